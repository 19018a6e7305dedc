// Stands before `locum serve` and shows its token, for clients that cannot. Everything else of a request is left as it is.
import http from "node:http";

const [port, token] = process.argv.slice(2);

const server = http.createServer((request, response) => {
  const headers = { ...request.headers, authorization: `Bearer ${token}` };
  const options = { host: "127.0.0.1", port, method: request.method, path: request.url, headers };
  const forwarded = http.request(options, (answer) => {
    response.writeHead(answer.statusCode, answer.headers);
    answer.pipe(response);
  });
  forwarded.on("error", () => response.destroy());
  response.on("close", () => forwarded.destroy());
  request.pipe(forwarded);
});

server.listen(0, "127.0.0.1", () => console.log(server.address().port));
