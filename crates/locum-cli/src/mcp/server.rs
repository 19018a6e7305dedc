//! What a client may ask, each handed to the file that answers it. It lives as long as a session of the protocol does, or
//! for one request where the protocol has none.

use std::sync::{Arc, OnceLock};

use locum::faces::Face;
use locum::{Desk, Uid};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, CustomRequest, CustomResult, DiscoverResult, ErrorCode,
    GetPromptRequestParams, GetPromptResponse, GetTaskParams, GetTaskResult, Implementation, InitializeRequestParams,
    InitializeResult, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig,
    SubscribeRequestParams, SubscriptionFilter, UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::asking::{self, Clients};
use super::call::{self, Ended};
use super::http::Seat;
use super::subscriptions::{self, Watch};
use super::tasks::{self, Started, handshake_era};
use super::{prompts, resources, tools};

/// Calls under way at once: far above what clients make, far below what hurts.
const CALLS_MAX: usize = 1000;

/// Where a client sits.
#[derive(Clone)]
pub(super) struct Place {
    pub(super) face: Face,
    pub(super) desk: Desk,
}

/// What all clients of a process share.
pub(super) struct House {
    /// Cancelled when the client says no more, or when nobody is waited for any more.
    pub(super) left: CancellationToken,
    /// Those who can be asked.
    pub(super) clients: Arc<Clients>,
    calls: Semaphore,
}

impl House {
    pub(super) fn new(left: CancellationToken, clients: Arc<Clients>) -> Self {
        Self { left, clients, calls: Semaphore::new(CALLS_MAX) }
    }
}

/// The server, as one client sees it.
pub(super) struct Server {
    /// Where the client sits; over HTTP that is known when it has opened a session.
    place: OnceLock<Place>,
    house: Arc<House>,
    watch: Watch,
}

impl Server {
    /// For the only client of this process.
    pub(super) fn alone(place: Place, house: House) -> Self {
        Self { place: OnceLock::from(place), house: Arc::new(house), watch: Watch::default() }
    }

    /// For one of many, whose requests say where it sits.
    pub(super) fn seated(house: Arc<House>) -> Self {
        Self { place: OnceLock::new(), house, watch: Watch::default() }
    }

    /// Where a request is carried out: in the client's session, and where the protocol has none, in the one that all
    /// such requests share or that the request names.
    fn place(&self, context: &RequestContext<RoleServer>) -> Result<Place, ErrorData> {
        if let Some(place) = self.place.get() {
            return Ok(place.clone());
        }
        let seat = Seat::of(context).ok_or_else(|| ErrorData::internal_error("the request has no desk", None))?;
        Ok(Place { face: seat.face, desk: seat.standing })
    }

    async fn introduce(&self, mut config: ServerConfig, place: &Place) -> Result<ServerConfig, ErrorData> {
        let instructions = place.face.instructions(&place.desk).await;
        config.instructions = instructions.map_err(|refusal| ErrorData::internal_error(refusal.message, None))?;
        Ok(config)
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let mut capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_prompts()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_resources_list_changed()
            .enable_tasks()
            .build();
        // Only other faces name the agents in their tools.
        if let (Some(tools), Some(place)) = (&mut capabilities.tools, self.place.get()) {
            tools.list_changed = (place.face != Face::Native).then_some(true);
        }
        ServerConfig::new(capabilities).with_server_info(Implementation::new("locum", env!("CARGO_PKG_VERSION")))
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let place = match Seat::of(&context) {
            Some(seat) => self.place.get_or_init(|| Place { face: seat.face, desk: seat.own }).clone(),
            None => self.place(&context)?,
        };
        context.peer.set_peer_info(request.clone());
        if asking::can_ask(Some(&request.capabilities)) {
            self.house.clients.enter(place.desk.session().id.clone(), context.peer.clone());
        }
        self.introduce(self.negotiate_initialize(&request)?, &place).await
    }

    async fn discover(&self, context: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let config = self.introduce(self.get_info(), &self.place(&context)?).await?;
        Ok(DiscoverResult::from_server_info(self.supported_protocol_versions().into_owned(), config))
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let Place { face, desk } = self.place(&context)?;
        Ok(ListToolsResult::with_all_items(tools::list(face, &desk.muster().roster)))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Ok(_place) = self.house.calls.try_acquire() else {
            return Err(ErrorData::internal_error(format!("{CALLS_MAX} calls are under way already"), None));
        };
        let mut place = self.place(&context)?;
        // A client of the earlier era says with each call whether it wants a task, whatever else it knows.
        let knows_tasks = context.client_capabilities().is_some_and(|capabilities| capabilities.supports_tasks());
        let wants_task = knows_tasks && call::stands_alone(&context);
        if wants_task && tasks::may_be_task(place.face, &request) {
            let can_ask = asking::can_ask(context.client_capabilities().as_ref());
            // The task may ask before its name is known here.
            let _attending = can_ask.then(|| self.house.clients.attend(place.desk.session().id.clone()));
            return Ok(match tasks::start(&place, request).await? {
                Started::Task(task) => {
                    if can_ask {
                        for task in &task.tasks {
                            self.house.clients.poll(task.session.clone(), task.status.task_id);
                        }
                    }
                    CallToolResponse::Task(tasks::created(&place.desk, &task).await?)
                }
                Started::Refused(refused) => CallToolResponse::Complete(*refused),
            });
        }
        // That face promises to tell of the end of what it starts.
        let announced = (place.face == Face::Picoclaw && request.name == "spawn").then(|| place.desk.followed());
        if let Some((desk, _)) = &announced {
            place.desk = desk.clone();
        }
        let adds_resources = resources::are_added_by(place.face, &request);
        match call::carry_out(&place, request, &context, &self.house).await? {
            Ended::Answered(answer) => {
                if adds_resources && !answer.is_error {
                    self.watch.note_new_resources();
                }
                if let Some((desk, following)) = announced {
                    self.watch.announce(&desk, &following.tasks(), &context.peer).await;
                }
                Ok(tools::result(*answer).into())
            }
            Ended::Asks(question) => Ok(CallToolResponse::InputRequired(*question)),
            // The SDK sends no answer to a call that was given up.
            Ended::GivenUp => Err(ErrorData::internal_error("the call was given up; its task goes on", None)),
            Ended::Left => Err(ErrorData::internal_error("the client left; the task goes on", None)),
        }
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let cursor = request.and_then(|request| request.cursor);
        resources::list(&self.place(&context)?.desk, cursor).await
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        Ok(resources::read(&self.place(&context)?.desk, &request.uri).await?.into())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.watch.add(&self.place(&context)?.desk, request.uri).await
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.watch.remove(&request.uri);
        Ok(())
    }

    /// The SDK runs this beside the requests of a session; what the client watches is told from here.
    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        if let Some(place) = self.place.get() {
            self.watch.tell(place, &context.peer, &self.house.left).await;
        }
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(subscriptions::accepted(requested))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let place = self.place(context.request_context())?;
        subscriptions::listen(&place, &context, &self.house.left).await
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(prompts::list(self.place(&context)?.face)))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        Ok(prompts::get(&self.place(&context)?, request).await?.into())
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        tasks::get(&self.place(&context)?.desk, &request.task_id, &self.house.clients).await
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        tasks::update(&self.place(&context)?.desk, &request, &self.house.clients).await
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        tasks::cancel(&self.place(&context)?.desk, &request.task_id).await.map(drop)
    }

    /// What the SDK could not read as one of its requests.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        if let Some(method) = request.method.strip_prefix(handshake_era::PREFIX) {
            let (place, left) = (self.place(&context)?, &self.house.left);
            let answer = left.run_until_cancelled(handshake_era::answer(&place, method, &request));
            return match context.ct.run_until_cancelled(answer).await.flatten() {
                Some(answer) => {
                    let answer = answer?;
                    let created = answer["task"]["taskId"].as_str().and_then(|id| Uid::parse(id).ok());
                    if let Some(uid) = created {
                        self.watch.note_new_resources();
                        self.watch.follow(&place, &uid, &context.peer).await;
                    }
                    Ok(CustomResult::new(answer))
                }
                None => Err(ErrorData::internal_error("the request was given up; the task goes on", None)),
            };
        }
        let stands_alone = context.meta.protocol_version().is_some();
        let problem = match request.method.as_str() {
            "tools/call" => request.params_as::<CallToolRequestParams>().err().map(|error| error.to_string()),
            "initialize" if !stands_alone => {
                request.params_as::<InitializeRequestParams>().err().map(|error| error.to_string())
            }
            "tools/list" | "prompts/list" | "resources/list" | "resources/templates/list" => {
                request.params_as::<PaginatedRequestParams>().err().map(|error| error.to_string())
            }
            "resources/read" => request.params_as::<ReadResourceRequestParams>().err().map(|error| error.to_string()),
            "prompts/get" => request.params_as::<GetPromptRequestParams>().err().map(|error| error.to_string()),
            _ => {
                let message = format!("there is no method {:?}", shortened(&request.method));
                return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None));
            }
        };
        let problem = problem.unwrap_or_else(|| "they are missing".to_owned());
        Err(ErrorData::invalid_params(format!("the params do not fit: {}", shortened(&problem)), None))
    }
}

/// The head of a text that a client chose, for an error.
pub(super) fn shortened(text: &str) -> String {
    text.chars().take(200).collect()
}
