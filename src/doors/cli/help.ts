import { Argument, type Command } from 'commander'
import type { ErrorCode } from '../../base/error-codes.ts'
import { UserError } from '../../base/errors.ts'
import { nearestName } from '../../base/text.ts'
import { shellWord } from '../../platform/shell-word.ts'
import { oneLine } from '../../tell/words/safe-text.ts'

/** Commands that belong together, in the order in which a person comes to need them. */
interface HelpGroup {
  /** What is typed behind `help`; some are the name of a command, too. */
  name: string
  heading: string
  /** The commands that the help names with what they do, in a few words. */
  shown: readonly (readonly [name: string, what: string])[]
  /** Those that it only names. */
  also: readonly string[]
}

const GROUPS: readonly HelpGroup[] = [
  {
    name: 'start',
    heading: 'Start',
    shown: [
      ['"<goal>"', 'work on it until it is done, in at most 10 rounds'],
      ['start', 'build what .codemachine/inputs/specifications.md asks for'],
      ['change', 'one change: a plan that you accept, carried out and proved'],
      ['resume', 'resume a session that was interrupted, or stopped by a limit'],
      ['queue', 'queued prompts; each becomes its own session'],
      ['demo', 'see it work, without an account or a network'],
    ],
    also: ['adopt', 'team', 'flow', 'schedule', 'templates', 'agents'],
  },
  {
    name: 'watch',
    heading: 'Watch',
    shown: [
      ['status', 'what is running here, and its progress'],
      ['list', 'all sessions of this directory'],
      ['logs', 'what happened in a session; -f follows it'],
      ['attach', 'the screen of a run without a terminal'],
    ],
    also: ['sessions', 'watch', 'web', 'notify'],
  },
  {
    name: 'steer',
    heading: 'Steer',
    shown: [
      ['steer', 'tell the running agent something'],
      ['stop', 'stop after this round; --now stops at once'],
      ['replan', 'change the plan'],
      ['decide', 'make the decision it asks for'],
    ],
    also: ['pause', 'unpause', 'interrupt', 'skip', 'retry', 'limits', 'plan'],
  },
  {
    name: 'prove',
    heading: 'Prove',
    shown: [
      ['report', 'in the morning: what was done, proved, refused, asked'],
      ['verify', 'run the gates of a done session again'],
      ['review', 'have a reviewer look at the work'],
      ['land', 'merge the work of a worktree'],
    ],
    also: ['publish', 'certificate', 'contract', 'questions'],
  },
  {
    name: 'undo',
    heading: 'Undo',
    shown: [
      ['diff', 'changes since the start, or between two savepoints'],
      ['rewind', 'restore the files of a savepoint; can be undone'],
    ],
    also: ['savepoints', 'prune'],
  },
  {
    name: 'setup',
    heading: 'Set up',
    shown: [
      ['doctor', 'check the setup and show fixes'],
      ['login', "log in to codex for codemachine's rounds"],
      ['complete', 'completions for your shell'],
    ],
    also: ['logout', 'engines', 'settings', 'secret', 'service', 'uninstall', 'mcp'],
  },
  {
    name: 'fleet',
    heading: 'Many machines',
    shown: [],
    also: ['submit', 'worker', 'fleet'],
  },
]

const COLUMNS = 80

/** Behind `help`: the options of a run, and the exit codes. */
const OPTIONS = 'options'

const EXIT_CODES = `
Exit codes:
  0 done    2 wrong usage    3 a limit was reached    5 stalled: no progress
  4 needs a person; review, verify, land: not agreed, not proved, a conflict
  6 another codemachine runs here
  130, 143 interrupted: codemachine resume continues
`

/** Gives the program its help in groups, and the command `help`. Called once all its commands are there, but for `complete`. */
export function addHelp(program: Command): void {
  program.helpInformation = () => overview(program)
  const topics = [...GROUPS.map(({ name }) => name), OPTIONS, 'complete']
  const what = new Argument('[what...]', 'a command, a group of them, or the code of an error')
  const names = new Set([...topics, ...program.commands.map(each => each.name())])
  program
    .helpCommand(false)
    .command('help')
    .description('the help of a command, of a group of them, or of an error')
    .addArgument(what.choices([...names]).argParser((word: string, before: string[] = []) => [...before, word]))
    .action((words: string[] = []) => helpOn(program, words))
}

/** Gives `codex-flow` the command `help`, of a command or the code of an error. Called once all its commands are there. */
export function addFlowHelp(program: Command): void {
  program
    .helpCommand(false)
    .command('help')
    .description('show the help of a command')
    .argument('[command]', 'a command, or the code of an error')
    .action((word?: string) => helpOn(program, word === undefined ? [] : [word], []))
}

/**
 * Gives a command, and each one below it, its examples.
 * @param words the words of the command in the table: `flow` for `codex-flow`
 */
export function addExamples(command: Command, words: readonly string[] = []): void {
  const examples = EXAMPLES[words.join(' ')]
  if (examples !== undefined) command.addHelpText('after', () => examplesText(examples, rootOf(command)))
  for (const each of command.commands) addExamples(each, [...words, each.name()])
}

/** The program that a command is of. */
function rootOf(command: Command): Command {
  return command.parent === null ? command : rootOf(command.parent)
}

/** What they do stands beside them, or below them if that is wider than a terminal. */
function examplesText(examples: Examples, program: Command): string {
  const typed = examples.map(([words, what]) => {
    const name = program.name()
    return [`${name} ${name === 'codex-flow' ? words.replace(/^flow /, '') : words}`, what] as const
  })
  const width = Math.max(...typed.map(([line]) => line.length))
  const fits = typed.every(([, what]) => width + what.length + 4 <= COLUMNS)
  const lines = typed.flatMap(([line, what]) => {
    if (fits) return `  ${line.padEnd(width)}  ${what}`.trimEnd()
    return what === '' ? `  ${line}` : [`  ${line}`, `      ${what}`]
  })
  return `\n${examples.length === 1 ? 'Example' : 'Examples'}:\n${lines.join('\n')}\n`
}

/** All of it at a glance: at most 40 lines of 80 columns. */
function overview(program: Command): string {
  const width = Math.max(...GROUPS.flatMap(({ shown }) => shown.map(([name]) => name.length)))
  const groups = GROUPS.flatMap(({ heading, shown, also }) => [
    `${heading}:${' '.repeat(Math.max(1, width + 3 - heading.length))}also ${also.join(', ')}`,
    ...shown.map(([name, what]) => `  ${name.padEnd(width)}  ${what}`),
  ])
  return `Usage: ${program.name()} [options] [goal...]
       ${program.name()} <command> [options]

${WHAT_IT_IS}

${groups.join('\n')}

Each has --help, with examples. Of a group: ${program.name()} help start (or watch,
steer, prove, undo, setup, fleet). Of an error: ${program.name()} help CM0601. All
options of a run, and the exit codes: ${program.name()} help options
`
}

const WHAT_IT_IS = `Leave a coding agent to work overnight; find the work done, and proven, in the
morning.`

/** Prints what is asked for; that of a command ends as `--help` does, by a `CommanderError`. */
async function helpOn(program: Command, words: readonly string[], groups = GROUPS): Promise<void> {
  const typed = words
    .join(' ')
    .toLowerCase()
    .replace(/^set[ -]?up$/, 'setup')
  const group = groups.find(({ name }) => name === typed)
  const command = commandAt(program, words)
  const { writeOut = () => {} } = program.configureOutput()
  // The group stands below: that is what is still seen when all has been printed.
  if (command !== null && group !== undefined) command.addHelpText('after', `\n${groupText(program, group)}`)
  if (command !== null) command.help()
  else if (group !== undefined) writeOut(groupText(program, group))
  else if (typed === OPTIONS && groups.length > 0) writeOut(optionsText(program))
  else if (/^cm\d+$/.test(typed)) writeOut(await errorText(typed.toUpperCase()))
  else throw new UserError('CM0101', nothingLike(program, words, groups))
}

async function errorText(code: string): Promise<string> {
  const { errorKinds } = await import('../../base/error-codes.ts')
  if (!Object.hasOwn(errorKinds, code)) {
    throw new UserError('CM0101', `There is no code ${oneLine(code, 40)}; docs/troubleshooting.md lists them.`)
  }
  const { title, cause, remedy } = errorKinds[code as ErrorCode]
  return `${code}: ${title}\n\n  Cause:      ${cause}\n  What to do: ${remedy}\n`
}

function nothingLike(program: Command, words: readonly string[], groups: readonly HelpGroup[]): string {
  const known = [...groups.map(({ name }) => name), OPTIONS, ...program.commands.map(each => each.name())]
  const nearest = nearestName(words[0] ?? '', known)
  const instead =
    nearest === null ? `${program.name()} --help lists them.` : `did you mean "${program.name()} help ${nearest}"?`
  return `There is no command and no group "${oneLine(words.join(' '), 200)}"; ${instead}`
}

/** The command that these words name, such as `queue add`; null: none. */
function commandAt(program: Command, words: readonly string[]): Command | null {
  let at: Command = program
  for (const word of words) {
    const next = at.commands.find(each => each.name() === word)
    if (next === undefined) return null
    at = next
  }
  return at
}

function groupText(program: Command, { heading, shown, also }: HelpGroup): string {
  const named = [...shown.map(([name]) => name), ...also]
  const commands = named.flatMap(name => program.commands.find(each => each.name() === name) ?? [])
  const goal = shown.find(([name]) => name.startsWith('"'))
  const items = [
    ...(goal === undefined ? [] : [[`${program.name()} ${goal[0]}`, goal[1]] as const]),
    ...commands.map(each => [`${program.name()} ${each.name()}`, each.description()] as const),
  ]
  const examples = named.flatMap(name => EXAMPLES_OF_GROUPS[name] ?? EXAMPLES[name]?.slice(0, 1) ?? [])
  return `${heading}:\n${itemsText(program, items)}\n${examplesText(examples, program)}`
}

function optionsText(program: Command): string {
  const helper = program.createHelp()
  const options = helper.visibleOptions(program)
  const items = options.map(each => [helper.optionTerm(each), helper.optionDescription(each)] as const)
  return `Options of a run: ${program.name()} [options] [goal...]\n${itemsText(program, items)}\n${EXIT_CODES}`
}

function itemsText(program: Command, items: readonly (readonly [term: string, what: string])[]): string {
  const helper = program.createHelp()
  helper.prepareContext({ helpWidth: program.configureOutput().getOutHelpWidth?.() ?? COLUMNS })
  const width = Math.max(...items.map(([term]) => term.length))
  return items.map(([term, what]) => helper.formatItem(term, width, what, helper)).join('\n')
}

/** What is typed behind `codemachine`, and what it does. */
type Examples = readonly (readonly [typed: string, what: string])[]

/** For the help of a group, where the first one of a command does not do. */
const EXAMPLES_OF_GROUPS: Readonly<Record<string, Examples>> = {
  '"<goal>"': [
    ['"add a dark mode, with tests"', ''],
    ['--verify "npm test" --review "…"', 'done only if the tests pass and a reviewer agrees'],
    ['--max-time 8h "…"', 'a time limit; --max-tokens 5M: a token limit'],
    ['--rounds 40 - < goal.md', 'a longer goal, from a file'],
    ['--detach "…"', 'free this terminal at once'],
  ],
  flow: [['flow init', 'several agents in a row, from a TOML file: also codex-flow']],
}

/** By the words of a command. */
const EXAMPLES: Readonly<Record<string, Examples>> = {
  change: [
    ['change "add rate limiting to the API"', 'plan it, ask you to accept the plan, carry it out'],
    ['change - < request.md', 'a longer request, from a file'],
    ['change --executor ollama "…"', 'a model on this machine carries out the tasks'],
    ['change --auto --verify "npm test" "…"', 'no questions; done only if the tests pass'],
    ['change --plan-only "…"', 'only plan; codemachine resume carries it out'],
    ['change --follow-up "…"', 'continue from the last change here'],
    ['queue add --template change "…"', 'the next session, as your settings say'],
  ],
  adopt: [
    ['adopt', 'choose one of this directory, look at the goal, and start'],
    ['adopt 0199a0b0 --max-time 8h --verify "npm test"', 'one by its id, with options of a run'],
    ['adopt 0199a0b0 --goal "finish the migration" --detach', 'with a goal of yours; ask nothing'],
    ['adopt --list --json', 'the conversations of this directory'],
  ],
  team: [
    ['team "a service that says hello, with a start script"', 'a new project in projects/'],
    ['team --network --yes "…"', 'commands reach the network; the plan is accepted'],
    ['team --project api "add a /health route"', 'in a directory that exists'],
    ['team --stepwise "…"', 'for models that cannot call tools: one command an answer'],
    ['team - < goal.md', 'a longer goal, from a file'],
    ['team -- plan a garden', 'a goal that begins like one of the commands'],
    ['team plan "…" > plan.json', 'the planner alone; its JSON on stdout'],
    ['team work "write start.sh" --project api', 'the worker alone: one step'],
    ['team review --project api', 'the reviewer alone; its JSON on stdout'],
    ['team list', 'the projects here, and how each ended'],
  ],
  secret: [
    ['secret set STRIPE_KEY', 'typed at a hidden prompt'],
    ['secret set STRIPE_KEY < key.txt', 'from a file, or another program'],
    ['secret set STRIPE_KEY --check ./check-key.sh', 'a command that passes if the value is good'],
    ['secret list -C projects/shop', ''],
    ['secret export STRIPE_KEY --to .env', 'for the finished project, into a file that git ignores'],
  ],
  flow: [
    ['flow init', 'a first workflow, with its prompts'],
    ['flow run .codex-flow/workflows/commit.workflow.toml', 'replay what was recorded'],
    ['flow run .codex-flow/workflows/commit.workflow.toml --no-mock', 'run it for real'],
    ['flow run commit --mock', 'by the name that `flow list` prints'],
    ['flow run x.workflow.toml --dry-run', 'only the command lines and inputs'],
    ['flow run x.workflow.toml --no-mock --var diff=@my.diff', 'with a value from a file'],
    ['flow validate', 'every mistake, with line and column'],
    ['flow show x.workflow.toml', 'the steps, in order'],
  ],
  worker: [
    ['worker --queue postgres://night@db.example/fleet', ''],
    ["worker --slots 4 --tags gpu,linux --repos 'git@host:team/*'", ''],
    ['worker --once', 'run what waits now, then end'],
  ],
  start: [
    ['start', 'plan it, show the plan, and build it, in at most 50 rounds'],
    ['start --yes --max-time 8h --verify "npm test"', 'no questions; done only if the tests pass'],
    ['start --dry-run', 'only print prompts and commands; spends nothing'],
  ],
  templates: [['templates', 'the kinds of work, and which one start takes']],
  'templates list': [['templates list --json', '']],
  'templates select': [['templates select build', 'start builds by a team in this project from now on']],
  'team plan': [['team plan "a service that says hello" > plan.json', 'the plan alone']],
  'team work': [['team work "write start.sh" --project api', 'one step, in projects/api or ./api']],
  'team review': [['team review --project api', '']],
  'team rm': [['team rm api', 'asks about each: the project, its records, its secrets']],
  'team list': [['team list', '']],
  'team show': [['team show api', '']],
  'secret set': [
    ['secret set STRIPE_KEY', 'typed at a hidden prompt'],
    ['secret set STRIPE_KEY < key.txt', 'from a file'],
  ],
  'secret list': [['secret list -C projects/shop', '']],
  'secret rm': [['secret rm STRIPE_KEY', '']],
  'secret check': [['secret check STRIPE_KEY --network', 'its check may reach the network']],
  'secret export': [['secret export STRIPE_KEY --to .env', '']],
  resume: [
    ['resume', 'the newest session that is not done'],
    ['resume --rounds 30 20261121_1', 'that session, in at most 30 rounds counted from its start'],
  ],
  list: [
    ['list', ''],
    ['list --all', 'the newest of every directory'],
    ['list --json', 'for a program'],
  ],
  sessions: [
    ['sessions', 'those of this directory; type to filter, Enter opens one'],
    ['sessions --all', 'of every directory'],
  ],
  status: [
    ['status', ''],
    ['status --line', 'one short line, for the status bar of tmux'],
  ],
  logs: [
    ['logs -f', 'follow what runs'],
    ['logs 20261121_1 --json', 'the events of that session'],
  ],
  watch: [['watch', 'what another terminal runs here']],
  attach: [['attach', 'a run that --detach started or /detach left']],
  queue: [
    ['queue add "then update the docs"', 'the next session'],
    ['queue list', ''],
  ],
  'queue add': [
    ['queue add "then update the docs"', ''],
    ['queue add --rounds 20 --verify "npm test" "…"', 'with limits and a gate of its own'],
  ],
  'queue run': [['queue run --max-time 8h', 'one session after the other, for at most 8 hours']],
  'queue list': [['queue list', '']],
  'queue move': [['queue move 3 --before 1', 'without --before: at the end']],
  'queue edit': [['queue edit 2 "then update the docs, and the changelog"', '']],
  'queue rm': [['queue rm 2', '']],
  schedule: [
    ['schedule add "0 1 * * 1-5" "fix what the nightly tests found"', 'each working day at 1:00'],
    ['schedule list', ''],
  ],
  'schedule add': [
    ['schedule add "0 1 * * 1-5" "fix what the nightly tests found"', 'each working day at 1:00'],
    ['schedule add "0 22 * * 0" --max-time 6h --verify "npm test" "…"', 'each Sunday, with a limit and a gate'],
  ],
  'schedule list': [['schedule list', '']],
  'schedule rm': [['schedule rm 1', '']],
  steer: [
    ['steer "leave the API as it is"', ''],
    ['steer --agent qa-engineer "skip the slow tests"', 'one of the agents at work'],
  ],
  stop: [
    ['stop', 'after this round; codemachine resume continues'],
    ['stop --now', ''],
  ],
  pause: [['pause', 'codemachine unpause continues']],
  unpause: [['unpause', '']],
  retry: [['retry', 'retry now instead of waiting for a limit or the network']],
  limits: [['limits --rounds 30 --max-time 6h', 'limits in total, from the next round on']],
  interrupt: [['interrupt', 'codemachine unpause continues']],
  skip: [['skip', '']],
  replan: [
    ['replan "do the docs first"', 'see what changed; codemachine unpause continues'],
    ['replan --go "do the docs first"', 'then continue without asking'],
  ],
  decide: [
    ['decide', 'the question, and the commands that answer it'],
    ['decide accept', ''],
  ],
  plan: [
    ['plan', 'the waiting plan, or the newest'],
    ['plan accept', ''],
    ['plan reject "leave the database out"', ''],
  ],
  'plan show': [['plan show --diff', 'changes since the version before']],
  'plan accept': [['plan accept', '']],
  'plan reject': [['plan reject "leave the database out"', '']],
  'plan edit': [['plan edit', 'in $VISUAL or $EDITOR']],
  report: [
    ['report --open', 'as a page, in the browser'],
    ['report 20261121_1 --md --output -', 'that session, as Markdown, on stdout'],
  ],
  questions: [
    ['questions', 'what is open'],
    ['questions --all', ''],
  ],
  'questions answer': [
    ['questions answer Q1 "Postgres"', ''],
    ['questions answer 20261121_1/Q2 1', 'the first of its choices'],
  ],
  'questions accept': [['questions accept Q1', 'the assumption is right']],
  verify: [
    ['verify', 'the newest session that is done'],
    ['verify --certificate night.jsonl --signers signers', 'what somebody else proved'],
    ['verify --note --no-run', 'the note on HEAD: only signature and files'],
    ['verify --note --signers signers --require proved --summary ci.md', 'in CI'],
  ],
  publish: [
    ['publish --draft', 'the newest session, on origin'],
    ['publish 20261121_1 --remote upstream --note --yes', 'asks nothing; pushes the certificate, too'],
  ],
  certificate: [
    ['certificate --out night.intoto.jsonl', 'of the newest session that is done; not signed'],
    ['certificate --sign ~/.ssh/id_ed25519.pub --note', 'signed, and as a note on its commit'],
  ],
  contract: [
    ['contract', 'of the newest session'],
    ['contract --export tests/acceptance', 'keep its checks'],
  ],
  review: [
    ['review', 'the work of the newest session'],
    ['review --goal "add a dark mode"', 'uncommitted changes, judged by that goal'],
  ],
  savepoints: [['savepoints', '']],
  diff: [
    ['diff', 'since the newest session began'],
    ['diff 2 3', 'what round 3 changed'],
    ['diff --stat', 'only which files, and how many lines'],
  ],
  rewind: [
    ['rewind 3 --dry-run', 'what would change'],
    ['rewind 3', 'the files as they were after round 3'],
    ['rewind start', 'undo all of the newest session'],
  ],
  prune: [
    ['prune --dry-run', 'what is older than 30 days'],
    ['prune --larger-than 2G', ''],
  ],
  land: [
    ['land', 'the only worktree with something to land'],
    ['land dark-mode --message "Add a dark mode"', ''],
    ['land --queue --commit "Work of the night"', 'all whose session is done, one after the other'],
    ['land dark-mode --onto main', 'without a checked-out branch, as in jj'],
  ],
  agents: [
    ['agents list', ''],
    ['agents show qa-engineer', 'the prompt that it works by'],
  ],
  'agents list': [['agents list', '']],
  'agents show': [['agents show qa-engineer', '']],
  'agents validate': [['agents validate', '']],
  'flow init': [['flow init', '']],
  'flow run': [
    ['flow run .codex-flow/workflows/commit.workflow.toml', 'replay what was recorded'],
    ['flow run .codex-flow/workflows/commit.workflow.toml --no-mock', 'run it for real'],
  ],
  'flow list': [['flow list', '']],
  'flow validate': [['flow validate', 'all of the project']],
  'flow help': [['flow help CM1001', 'what the code of an error means, and what to do']],
  'flow show': [['flow show .codex-flow/workflows/commit.workflow.toml', '']],
  login: [
    ['login', 'in the browser'],
    ['login --with-api-key < key.txt', ''],
  ],
  'login status': [['login status', '']],
  logout: [['logout', '']],
  web: [
    ['web', 'prints a link to open once'],
    ['web --name mac.tailnet.ts.net', 'behind tailscale serve, for a phone'],
  ],
  'web link': [['web link --look --qr', 'for a view-only device']],
  'web pair': [['web pair', 'a code to type on the new device']],
  'web devices': [['web devices', '']],
  'web end': [['web end 0123456789abcdef', '']],
  'web stop': [['web stop', '']],
  service: [['service install --dry-run', 'what would be installed']],
  'service install': [
    ['service install --dry-run', ''],
    ['service install', ''],
  ],
  'service status': [['service status', '']],
  'service uninstall': [['service uninstall', '']],
  'service run': [['service run', '']],
  demo: [
    ['demo', 'a goal, with the model slowed down to a pace that can be read'],
    ['demo --template build --fast', 'a build by a team'],
  ],
  doctor: [['doctor', '']],
  engines: [['engines', '']],
  notify: [['notify', '']],
  settings: [['settings schema', 'the schemas of all files']],
  'settings schema': [
    ['settings schema', ''],
    ['settings schema codemachine.toml', ''],
  ],
  uninstall: [
    ['uninstall --dry-run', 'only name it'],
    ['uninstall --keep sessions settings', 'all but these'],
  ],
  mcp: [
    ['mcp --dir ~/shop', 'what an MCP client starts'],
    ['mcp --dir ~/shop --allow-write', 'with rewind and land'],
  ],
  submit: [
    ['submit --repo git@host:team/app.git "add a dark mode, with tests"', ''],
    ['submit --max-time 4h --not-before 22:00 "…"', 'for the repository of this checkout'],
    ['submit --file night.toml --dry-run', 'what would be submitted; no database is needed'],
    ['submit --file night.toml', 'many sessions, all or none'],
  ],
  fleet: [
    ['fleet setup', 'once, by the owner of the database'],
    ['fleet doctor', 'check everything that a fleet needs'],
    ['fleet status', 'in the evening: what will be done by 07:00?'],
    ['fleet list --state ended', 'in the morning'],
  ],
  'fleet status': [['fleet status --by 09:30', '']],
  'fleet list': [
    ['fleet list', 'the newest 50'],
    ['fleet list --state dead --state held', 'what needs a person'],
  ],
  'fleet show': [['fleet show 20261120_17', '']],
  'fleet logs': [['fleet logs -f 20261120_17', 'until it ends, wherever it runs']],
  'fleet report': [['fleet report 20261120_17 --html --open', '']],
  'fleet cancel': [['fleet cancel 20261120_17 20261120_18', '']],
  'fleet retry': [['fleet retry 20261120_17', 'from its newest savepoint']],
  'fleet steer': [['fleet steer 20261120_17 "keep the old names"', '']],
  'fleet answer': [['fleet answer 20261120_17 accept', '']],
  'fleet drain': [['fleet drain build-3', 'before its machine is shut down']],
  'fleet prune': [['fleet prune --older 30d --dry-run', 'what would go']],
  'fleet setup': [
    ['fleet setup --queue postgres://owner@db.example/fleet', ''],
    ['fleet setup --local', 'to try a fleet on this machine; PostgreSQL must be installed'],
    ['fleet setup --team shop', 'with a team, whose members alone see its sessions'],
    ['fleet setup --tokens-per-day shop=50M', 'what that team may use in a day'],
  ],
  'fleet demo': [['fleet demo', 'without an account; PostgreSQL must be installed']],
  'fleet doctor': [
    ['fleet doctor', ''],
    ['fleet doctor --offline', 'without asking the remotes'],
  ],
  help: [
    ['help steer', 'the commands that steer a run'],
    ['help queue add', ''],
    ['help CM0601', 'what the code of an error means, and what to do'],
  ],
}

/** That there is no such command, and what may be meant. */
export function sentenceOfUnknown(command: Command, word: string): string {
  const names = command.commands.map(each => each.name())
  const nearest = nearestName(word, names)
  const instead =
    nearest !== null
      ? `did you mean "${typedName(command)} ${nearest}"?`
      : names.includes('run') && word.endsWith('.toml')
        ? `to run that file: ${typedName(command)} run ${shellWord(oneLine(word, MOST_WORD))}`
        : word === 'run' && command.parent === null
          ? `a goal alone begins a run: ${typedName(command)} "<goal>".`
          : `${typedName(command)} --help lists them.`
  return `There is no command "${oneLine(word, MOST_WORD)}"; ${instead}`
}

/** The most that is repeated of a word that was typed, characters. */
export const MOST_WORD = 200

/** `codemachine queue add`. */
export function typedName(command: Command): string {
  return command.parent === null ? command.name() : `${rootOf(command).name()} ${nameOf(command)}`
}

/** `queue add`. */
export function nameOf(command: Command): string {
  const { parent } = command
  return parent === null || parent.parent === null ? command.name() : `${nameOf(parent)} ${command.name()}`
}
