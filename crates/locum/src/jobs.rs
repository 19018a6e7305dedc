//! The commands of tasks: what each task has under way, and its private directory. Everything that a task started ends
//! with it, here.

use std::collections::HashMap;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::join_all;
use locum_core::ids::Uid;
use locum_core::limits;
use locum_core::permission::HostPattern;
use locum_core::task::Plan;
use locum_core::task::event::ProcessEnd;
use tokio::time::Instant;

use crate::pool::Pool;
use crate::process::is_running;
use crate::sandbox::{End, Level, Order, OutputTo, Report, Running, Sandbox, make_private};
use crate::web::{Dialer, Passage, proxy_variables};

/// How long beyond its grace period a launcher may take to report: it only waits for the kernel then.
const REPORT_MS_MAX: u64 = 2_000;

/// How often a process that should end is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// The file in a task's private directory that names its processes.
const PROCESSES: &str = "processes";

/// How many names are tried for an output: more than a task has turns and calls.
const OUTPUT_NAMES_MAX: u32 = 100_000;

/// The task that runs a command, as the command knows it.
#[derive(Debug, Clone)]
pub(crate) struct TaskBadge {
    pub(crate) uid: Uid,
    name: String,
    depth: u32,
    /// The sandbox that the task was promised.
    level: Option<Level>,
    /// The hosts that it may reach: in each of these lists.
    network: Vec<Vec<HostPattern>>,
}

impl TaskBadge {
    /// The badge of the task with this plan.
    pub(crate) fn of(plan: &Plan) -> Self {
        Self {
            uid: plan.uid.clone(),
            name: plan.task_id.to_string(),
            depth: plan.lineage.depth,
            level: plan.receipt.sandbox.as_deref().and_then(|level| level.parse().ok()),
            network: plan.grants.permissions.network.clone(),
        }
    }

    /// A task that is nobody's.
    #[cfg(test)]
    pub(crate) fn for_tests() -> Self {
        Self {
            uid: Uid::parse("test").expect("a name"),
            name: "t_01".to_owned(),
            depth: 1,
            level: None,
            network: Vec::new(),
        }
    }

    fn variables(&self) -> [(String, String); 4] {
        let named = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        [
            named("LOCUM_SUBAGENT_CHILD", "1"),
            // What programs look for that know pi.
            named("PI_SUBAGENT_CHILD", "1"),
            named("LOCUM_TASK", &self.name),
            named("LOCUM_DEPTH", &self.depth.to_string()),
        ]
    }
}

/// The commands of all tasks of this process.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    sandbox: Option<Sandbox>,
    /// What opens connections for commands that may have some.
    dialer: Arc<Dialer>,
    tasks: Mutex<HashMap<Uid, TaskJobs>>,
}

/// The commands of one task.
#[derive(Debug, Default)]
struct TaskJobs {
    /// How many outputs were written to files.
    outputs: u32,
    /// Those in the background, by number.
    background: Vec<BackgroundJob>,
    /// Those that nobody waits for any more; they were asked to end.
    ending: Vec<Running>,
}

/// A command in the background.
#[derive(Debug)]
struct BackgroundJob {
    number: u32,
    output: PathBuf,
    running: Option<Running>,
    report: Option<Report>,
}

/// What a look at a background job shows.
#[derive(Debug)]
pub(crate) struct JobState {
    /// Where its output is, outside.
    pub(crate) output: PathBuf,
    /// The same as its commands know it.
    pub(crate) shown: String,
    /// How it ended, if it has.
    pub(crate) report: Option<Report>,
}

/// A command that somebody waits for. Dropped before its end, it is asked to end, and its task does not end before it.
pub(crate) struct Attended<'a> {
    jobs: &'a Jobs,
    uid: Uid,
    running: Option<Running>,
    passage: Option<Passage>,
}

impl Attended<'_> {
    /// The connections that it wanted and did not get, in words.
    pub(crate) fn refused(&self) -> Vec<String> {
        self.passage.as_ref().map(Passage::refused).unwrap_or_default()
    }

    /// The command.
    pub(crate) fn running(&mut self) -> Option<&mut Running> {
        self.running.as_mut()
    }

    /// Asks it to end and waits until it has, or for as long as that may take.
    pub(crate) async fn ended(&mut self) -> Report {
        let Some(running) = &mut self.running else { return lost() };
        running.stop();
        let report = reported(running).await;
        self.running = None;
        report
    }

    /// How it ended by itself.
    pub(crate) async fn report(&mut self) -> Report {
        let Some(running) = &mut self.running else { return lost() };
        let report = running.report().await;
        self.running = None;
        report
    }
}

impl Drop for Attended<'_> {
    fn drop(&mut self) {
        if let Some(mut running) = self.running.take() {
            running.stop();
            self.jobs.tasks().entry(self.uid.clone()).or_default().ending.push(running);
        }
    }
}

fn lost() -> Report {
    End::Refused("the command was lost".to_owned()).into()
}

async fn reported(running: &mut Running) -> Report {
    let patience = Duration::from_millis(limits::COMMAND_GRACE_MS + REPORT_MS_MAX);
    tokio::time::timeout(patience, running.report()).await.unwrap_or_else(|_| lost())
}

impl Jobs {
    /// Commands in this sandbox; without one, none are run.
    pub(crate) fn new(sandbox: Option<Sandbox>, dialer: Arc<Dialer>) -> Self {
        Self { sandbox, dialer, tasks: Mutex::default() }
    }

    /// What commands are shut into.
    pub(crate) fn sandbox(&self) -> Option<&Sandbox> {
        self.sandbox.as_ref()
    }

    /// What new tasks are promised.
    pub(crate) fn level(&self) -> Option<Level> {
        self.sandbox.as_ref().map(Sandbox::level)
    }

    fn tasks(&self) -> MutexGuard<'_, HashMap<Uid, TaskJobs>> {
        // Nothing panics or awaits under this lock.
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The order for a command of a task, with its private directory made. What cannot be done is a sentence.
    pub(crate) fn order(&self, task: &TaskBadge, root: &Path, cwd: &Path) -> Result<Order, String> {
        let sandbox = self.sandbox.as_ref().ok_or("commands are refused here: this program was given no sandbox")?;
        let private = sandbox.private().join(task.uid.to_string());
        make_private(&private).map_err(|error| format!("{} cannot be made: {error}", private.display()))?;
        let mut order = sandbox.order(task.level.unwrap_or(sandbox.level()), root, &private)?;
        order.directory = root.join(cwd);
        order.variables.extend(task.variables());
        order.has_sentry = order.level == Level::Full;
        // Without a network of its own there is no entrance to it; that is said when the task is accepted.
        if order.level == Level::Full && !task.network.is_empty() {
            order.has_entrance = true;
            order.variables.extend(proxy_variables(&task.network));
        }
        Ok(order)
    }

    /// Opens the way to the hosts that a task may reach, for one of its commands.
    fn let_through(&self, task: &TaskBadge, running: &mut Running) -> Option<Passage> {
        if task.network.is_empty() {
            return None;
        }
        let passage = Passage::new(&task.network, Arc::clone(&self.dialer));
        running.let_through(passage.clone());
        Some(passage)
    }

    /// Starts a command that the caller waits for.
    pub(crate) async fn attend(&self, task: &TaskBadge, order: &Order) -> Result<Attended<'_>, String> {
        let sandbox = self.sandbox.as_ref().ok_or("commands are refused here")?;
        // From here on the task has something to end.
        self.tasks().entry(task.uid.clone()).or_default();
        let mut running = Running::start(sandbox, order, OutputTo::Reader).await?;
        self.note(&task.uid, &running.end());
        let passage = self.let_through(task, &mut running);
        Ok(Attended { jobs: self, uid: task.uid.clone(), running: Some(running), passage })
    }

    /// Notes a process of a task where whoever goes on with it after this one finds it.
    pub(crate) fn note(&self, uid: &Uid, process: &ProcessEnd) {
        let Some(sandbox) = &self.sandbox else { return };
        let private = sandbox.private().join(uid.to_string());
        let line = format!("{} {}\n", process.pid, process.started);
        // Without a note its end is not waited for by another process, which is all that is lost.
        make_private(&private).ok();
        let file = std::fs::OpenOptions::new().create(true).append(true).mode(0o600).open(private.join(PROCESSES));
        if let Ok(mut file) = file {
            file.write_all(line.as_bytes()).ok();
        }
    }

    /// The processes of a task that were noted, by this process or by one before it, and are still there.
    fn noted(&self, uid: &Uid) -> Vec<ProcessEnd> {
        let Some(sandbox) = &self.sandbox else { return Vec::new() };
        let text = std::fs::read_to_string(sandbox.private().join(uid.to_string()).join(PROCESSES)).unwrap_or_default();
        let noted = text.lines().filter_map(|line| {
            let (pid, started) = line.split_once(' ')?;
            Some(ProcessEnd { pid: pid.parse().ok()?, started: started.to_owned(), ended: false })
        });
        // A worker process is among those of its task.
        noted.filter(|noted| noted.pid != std::process::id() && is_running(noted.pid, &noted.started)).collect()
    }

    fn has_notes(&self, uid: &Uid) -> bool {
        let private = self.sandbox.as_ref().map(|sandbox| sandbox.private().join(uid.to_string()));
        private.is_some_and(|private| private.join(PROCESSES).exists())
    }

    /// A new file for a whole output, and its name as commands know it. Nothing that a command made is ever opened.
    pub(crate) fn output_file(
        &self,
        task: &TaskBadge,
        order: &Order,
    ) -> Result<(std::fs::File, PathBuf, String), String> {
        for _ in 0..OUTPUT_NAMES_MAX {
            let number = {
                let mut tasks = self.tasks();
                let jobs = tasks.entry(task.uid.clone()).or_default();
                jobs.outputs += 1;
                jobs.outputs
            };
            let name = format!("output-{number}.txt");
            let path = order.outputs().join(&name);
            match std::fs::OpenOptions::new().create_new(true).write(true).mode(0o600).open(&path) {
                Ok(file) => return Ok((file, path, shown(order, &name))),
                // Another process worked on this task before.
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(format!("{} cannot be written: {error}", path.display())),
            }
        }
        Err("there are too many outputs already".to_owned())
    }

    /// Starts a command in the background, and returns its number.
    pub(crate) async fn start(&self, task: &TaskBadge, order: &Order) -> Result<u32, String> {
        let sandbox = self.sandbox.as_ref().ok_or("commands are refused here")?;
        let under_way = self
            .tasks()
            .get_mut(&task.uid)
            .map_or(0, |jobs| jobs.background.iter_mut().filter_map(|job| job.look().is_none().then_some(())).count());
        if under_way >= limits::JOBS_PER_TASK_MAX {
            return Err(format!("{under_way} jobs are under way, which is the most: end one with `job` first"));
        }
        let (file, output, _) = self.output_file(task, order)?;
        let mut running = Running::start(sandbox, order, OutputTo::File(file)).await?;
        self.note(&task.uid, &running.end());
        self.let_through(task, &mut running);
        let mut tasks = self.tasks();
        let background = &mut tasks.entry(task.uid.clone()).or_default().background;
        let number = u32::try_from(background.len()).unwrap_or(u32::MAX).saturating_add(1);
        background.push(BackgroundJob { number, output, running: Some(running), report: None });
        Ok(number)
    }

    /// How a job stands; none if there is no such job.
    pub(crate) fn look(&self, task: &TaskBadge, number: u32, order: &Order) -> Option<JobState> {
        let mut tasks = self.tasks();
        let job = tasks.get_mut(&task.uid)?.background.iter_mut().find(|job| job.number == number)?;
        let report = job.look();
        let name = job.output.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Some(JobState { output: job.output.clone(), shown: shown(order, &name), report })
    }

    /// Asks a job to end, and waits until it has.
    pub(crate) async fn stop(&self, task: &TaskBadge, number: u32) {
        let taken = {
            let mut tasks = self.tasks();
            let job =
                tasks.get_mut(&task.uid).and_then(|jobs| jobs.background.iter_mut().find(|job| job.number == number));
            job.and_then(|job| job.running.take())
        };
        let Some(running) = taken else { return };
        // Dropped half-way, it goes on ending, and its task waits for it.
        let mut attended = Attended { jobs: self, uid: task.uid.clone(), running: Some(running), passage: None };
        let report = attended.ended().await;
        let mut tasks = self.tasks();
        let jobs = tasks.get_mut(&task.uid);
        if let Some(job) = jobs.and_then(|jobs| jobs.background.iter_mut().find(|job| job.number == number)) {
            job.report = Some(report);
        }
    }

    /// Ends everything that a task has under way, waits until nothing is left of it, and removes its private directory.
    /// Returns what was under way.
    pub(crate) async fn end(&self, uid: &Uid, pool: &Pool) -> Vec<ProcessEnd> {
        let (jobs, mut noted) = (self.tasks().remove(uid), self.noted(uid));
        if jobs.is_none() && !self.has_notes(uid) {
            return Vec::new();
        }
        let jobs = jobs.unwrap_or_default();
        let background = jobs.background.into_iter().filter_map(|job| job.running);
        let mut ending: Vec<Running> = background.chain(jobs.ending).collect();
        ending.iter_mut().for_each(Running::stop);
        join_all(ending.iter_mut().map(reported)).await;
        // What another process started ends with that one, but not in the same moment.
        until_gone(&mut noted).await;
        let mut processes: Vec<ProcessEnd> = ending.iter().map(Running::end).collect();
        noted.retain(|noted| processes.iter().all(|known| known.pid != noted.pid));
        processes.extend(noted);
        if let Some(sandbox) = &self.sandbox {
            let private = sandbox.private().join(uid.to_string());
            // What cannot be removed is private, and the next cleaning finds it.
            pool.run(move || std::fs::remove_dir_all(private)).await.ok();
        }
        processes
    }
}

/// Waits until processes that are ending are gone, or for as long as that may take.
async fn until_gone(processes: &mut [ProcessEnd]) {
    let deadline = Instant::now() + Duration::from_millis(limits::COMMAND_GRACE_MS + REPORT_MS_MAX);
    loop {
        for process in processes.iter_mut() {
            process.ended = !is_running(process.pid, &process.started);
        }
        if processes.iter().all(|process| process.ended) || Instant::now() >= deadline {
            return;
        }
        tokio::time::sleep(LOOK).await;
    }
}

impl BackgroundJob {
    /// How it ended, if it has.
    fn look(&mut self) -> Option<Report> {
        if let Some(report) = self.running.as_mut().and_then(|running| running.report().now_or_never()) {
            self.running = None;
            self.report = Some(report);
        }
        self.report.clone()
    }
}

/// The name of a whole output, as commands know it.
fn shown(order: &Order, name: &str) -> String {
    match order.level {
        Level::Full => format!("{}/{name}", crate::sandbox::OUTPUTS),
        Level::Landlock | Level::None => order.outputs().join(name).to_string_lossy().into_owned(),
    }
}
