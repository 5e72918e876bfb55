import { type Command, Option } from 'commander'
import type { RunningCommand } from '../commands/ask.ts'
import { type Does, type LookFlags, withLook, withRunFlags } from '../flags.ts'
import { withSmallHeap, withTerms } from './parts.ts'

/** The commands that ask a running codemachine for something, from another terminal. */
export function addRunning(program: Command, does: Does): void {
  addQueue(program, does)
  for (const running of RUNNING_COMMANDS) {
    const command = withLook(program.command(running.name)).description(running.description)
    for (const flag of running.flags ?? []) command.addOption(flag())
    if (running.text !== undefined) command.argument('<text...>', running.text)
    const ask = does(async () => (await import('../commands/ask.ts')).askRunning)
    command.action((...typed: unknown[]) => ask(running, ...(running.text === undefined ? [[]] : []), ...typed))
  }
  addLimits(program, does)
  addDecide(program, does)
  addPlan(program, does)
}

function addLimits(program: Command, does: Does): void {
  withLook(program.command('limits'))
    .description('change the limits of the running session, from its next round on')
    .option('--rounds <n>', 'total rounds')
    .option('--max-time <duration>', 'total time, such as 8h or 1h30m')
    .option('--max-tokens <count>', 'total tokens, such as 5M or 500k')
    .option('--max-cost <amount>', 'total cost, by the prices in your config.toml, such as 10')
    .action(does(async () => (await import('../commands/ask.ts')).changeLimits))
}

const HOW_THEY_STAND = 'All sessions: codemachine list'
const TO_RESUME = 'To resume a session: codemachine resume'

/** All of them, in the order of the help. */
const RUNNING_COMMANDS: readonly RunningCommand[] = [
  {
    name: 'steer',
    description: 'tell the running agent something, from another terminal',
    text: 'what to tell it; - reads it from standard input',
    flags: [() => new Option('--agent <instance>', 'tell this agent, one of those at work')],
    ask: ({ text, agent }) => (agent === undefined ? { type: 'steer', text } : { type: 'steer-agent', agent, text }),
    withoutRun: 'To make it a session of its own: codemachine queue add "…"',
    refused: 'If the session continues, send it again; else: codemachine queue add "…"',
  },
  {
    name: 'stop',
    description: 'stop the run after this round, from another terminal; resume continues from there',
    flags: [
      () => new Option('--now', 'interrupt the round'),
      () =>
        new Option('--agent <instance>', 'end only this agent now; the round and the run continue').conflicts('now'),
    ],
    ask: ({ now, agent }) => (agent === undefined ? { type: 'stop', now } : { type: 'stop-agent', agent }),
    withoutRun: HOW_THEY_STAND,
  },
  {
    name: 'pause',
    description: 'pause after this round until unpause, from another terminal',
    ask: () => ({ type: 'pause' }),
    withoutRun: HOW_THEY_STAND,
  },
  {
    name: 'unpause',
    description: 'continue after a pause',
    ask: () => ({ type: 'unpause' }),
    withoutRun: TO_RESUME,
  },
  {
    name: 'retry',
    description: 'retry now instead of waiting, from another terminal',
    ask: () => ({ type: 'retry' }),
    withoutRun: TO_RESUME,
  },
  {
    name: 'interrupt',
    description: 'interrupt the round and pause, from another terminal; unpause continues',
    ask: () => ({ type: 'interrupt' }),
    withoutRun: HOW_THEY_STAND,
  },
  {
    name: 'skip',
    description: 'end this session and start the next in the queue, from another terminal',
    ask: () => ({ type: 'skip' }),
    withoutRun: 'The queue: codemachine queue list',
  },
  {
    name: 'replan',
    description: 'change the plan, from another terminal, and pause until unpause',
    text: 'what to change; - reads it from standard input',
    flags: [() => new Option('--go', 'continue with the changed plan, without a pause')],
    ask: ({ text, go }) => ({ type: 'replan', text, ...(go ? { go } : {}) }),
    verb: 'change the plan of',
    withoutRun: 'MAIN.md and tasks.json of its session can be edited by hand; codemachine resume continues.',
  },
]

function addDecide(program: Command, does: Does): void {
  withLook(program.command('decide'))
    .argument('[session]', 'the session, if it is not the one that runs here')
    .argument('[choice]', 'your choice; without it, show the question and the commands that answer it')
    .argument('[text...]', 'your comment; - reads it from standard input')
    .description('make a decision that a session waits for, from another terminal')
    .action(
      (
        session: string | undefined,
        choice: string | undefined,
        text: string[] | undefined,
        flags: LookFlags,
        command,
      ) =>
        does(async () => (await import('../commands/decide.ts')).decide)(
          [session, choice, ...(text ?? [])].filter(word => word !== undefined),
          flags,
          command,
        ),
    )
}

function addPlan(program: Command, does: Does): void {
  const load = does(async () => (await import('../change/plan.ts')).plan)
  const withShow = (command: Command) =>
    withLook(command)
      .option('--version <n>', 'this version, not the newest; of an answer: only if this version waits')
      .option('--diff', 'only the changes since the version before')
  const plan = withShow(program.command('plan'))
    .argument('[session]', 'the session, if it is not the newest that has a plan')
    .argument('[what]', 'show, accept, reject or edit; without it, show')
    .argument('[text...]', 'your comment; - reads it from standard input')
    .description('show the plan of a session, accept it or have it changed, from another terminal')
    .action((session: string | undefined, what: string | undefined, text: string[], flags: LookFlags, command) =>
      load(
        [session, what, ...text].filter(word => word !== undefined),
        flags,
        command,
      ),
    )
  const below = (name: string, description: string, words: [name: string, what: string]) => {
    const command = name === 'show' ? withShow(plan.command(name)) : withLook(plan.command(name))
    if (name === 'accept' || name === 'reject') command.option('--version <n>', 'only if this version waits')
    command
      .argument(...words)
      .description(description)
      .action((typed: string[] | string | undefined, flags: LookFlags, command) =>
        load([name, ...[typed ?? []].flat()], { ...plan.opts(), ...flags }, command),
      )
  }
  const session: [string, string] = ['[session]', 'the session, if it is not the newest that has a plan']
  below('show', 'the plan as it is, or an earlier version of it', session)
  below('accept', 'accept the version that waits', ['[remark...]', 'a comment for the agents that carry it out'])
  below('reject', 'have the version that waits changed; the next one is shown again', [
    '<change...>',
    'what to change; - reads it from standard input',
  ])
  below('edit', 'change the version that waits yourself, in your editor', [
    '[session]',
    'the session, if it is not the one that runs here',
  ])
}

function addQueue(program: Command, does: Does): void {
  const load = () => import('../commands/ask.ts')
  const list = does(async () => (await load()).queueList)
  const queue = withLook(program.command('queue'))
    .description('list the queued prompts; each becomes its own session')
    .action(list)
  withTerms(withLook(queue.command('add')))
    .argument('[prompt...]', 'the prompt; - reads it from standard input; with --template alone: the specification')
    .description('add a prompt at the end')
    .action(does(async () => (await load()).queueAdd))
  withRunFlags(queue.command('run'))
    .description('run the queue, one session after the other')
    .action(does(async context => (await withSmallHeap(context, () => import('../commands/run.ts'))).queueRun))
  withLook(queue.command('list'))
    .description('the same as without a command')
    .action((flags: LookFlags, command) => list({ ...queue.opts(), ...flags }, command))
  withLook(queue.command('edit'))
    .argument('<id>', 'the number that `queue list` shows')
    .argument('<prompt...>', 'the new prompt; - reads it from standard input')
    .description('replace a prompt')
    .action(does(async () => (await load()).queueEdit))
  withLook(queue.command('move'))
    .argument('<id>', 'the number that `queue list` shows')
    .option('--before <id>', 'put it before this one; without it, at the end')
    .description('change the order')
    .action(does(async () => (await load()).queueMove))
  withLook(queue.command('rm'))
    .argument('<id>', 'the number that `queue list` shows')
    .description('remove a prompt')
    .action(does(async () => (await load()).queueRemove))
}
