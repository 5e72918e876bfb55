import { realpath } from 'node:fs/promises'
import type { Command } from 'commander'
import { type Records, recordsOf, rootOf } from '../../session/records/records.ts'
import type { BareContext } from './program.ts'

/** What a shell may complete here, the likeliest first. */
type Values = (here: { context: BareContext; records: Records }) => Promise<readonly string[]>

/**
 * Gives an argument or option of the command that is typed the values that it can have in this directory.
 * @param typed the words before the cursor, and the begun one
 */
export async function addValues(program: Command, context: BareContext, typed: readonly string[]): Promise<void> {
  const { command, rest } = commandIn(program, typed.slice(0, -1))
  const directory = await realpath(context.cwd)
  const records = recordsOf({ root: rootOf(context), templates: new Map() }, directory)
  // Nothing is completed by what cannot be read.
  const read = async (name: string) => [...((await VALUES[name]?.({ context, records }).catch(() => [])) ?? [])]
  const before = rest.at(-1)
  const option = command.options.find(
    ({ long, short }) => before !== undefined && (long === before || short === before),
  )
  if (option !== undefined) option.argChoices ??= await read(option.long ?? '')
  else
    for (const argument of command.registeredArguments)
      argument.argChoices ??= await read(
        `${command.name()} ${argument.name()}` in VALUES ? `${command.name()} ${argument.name()}` : argument.name(),
      )
}

/** The command that these words call, and those behind its name. */
function commandIn(program: Command, words: readonly string[]): { command: Command; rest: readonly string[] } {
  const [word, ...rest] = words
  const below = program.commands.find(each => each.name() === word)
  return below === undefined ? { command: program, rest: words } : commandIn(below, rest)
}

const MOST = 50

const sessions: Values = async ({ records }) => (await records.sessions()).toReversed().slice(0, MOST)

const savepoints: Values = async ({ context, records }) => {
  const { lookAtSavepoints } = await import('../../project/savepoints.ts')
  await using open = await lookAtSavepoints({ ...context, ...(await modes()) }, records, () => {})
  const kept = (await open?.savepoints.list()) ?? []
  return ['start', ...kept.map(({ id }) => id).slice(0, MOST)]
}

const queued: Values = async ({ records }) => {
  const { openQueue } = await import('../../session/records/queue.ts')
  return (await openQueue(records.queue).list()).prompts.map(({ id }) => id)
}

const settings = async ({ context, records }: Parameters<Values>[0]) => {
  const { settingsOf } = await import('../../project/open-run.ts')
  return await settingsOf(context, records.directory, {})
}

const agents: Values = async here => {
  const { readRoster } = await import('../../agents/roster.ts')
  const { roster } = await readRoster(here.records.directory, (await settings(here)).agentTables)
  return [...roster.main, ...roster.sub].map(({ name }) => name)
}

const engines: Values = async here => ['codex', ...(await settings(here)).engines.keys()]

const VALUES: Readonly<Record<string, Values>> = {
  session: sessions,
  '--follow-up': sessions,
  savepoint: savepoints,
  from: savepoints,
  to: savepoints,
  'edit id': queued,
  'move id': queued,
  'rm id': queued,
  schedule: async ({ records }) => {
    const { listSchedules } = await import('../../session/records/schedules.ts')
    return (await listSchedules(records.schedules)).schedules.map(({ id }) => id)
  },
  '--before': queued,
  'show name': agents,
  '--agent': agents,
  '--engine': engines,
  '--fallback': engines,
  '--provider': async here => ['codex', ...(await settings(here)).providers.keys()],
  '--onto': async ({ context, records }) => {
    const { openCheckout } = await import('../../workspace/worktree/worktree.ts')
    const { listBranches } = await import('../../workspace/worktree/land.ts')
    return (await listBranches(await openCheckout(records.directory, context.env))).slice(0, MOST)
  },
  'land name': async ({ context, records }) => {
    const { openCheckout } = await import('../../workspace/worktree/worktree.ts')
    const { listLandableBranches } = await import('../../workspace/worktree/land.ts')
    const branches = await listLandableBranches(await openCheckout(records.directory, context.env), null)
    return branches.map(({ name }) => name)
  },
  KEY: async ({ records }) => {
    const { listSecrets } = await import('../../project/secrets/person-secrets.ts')
    return (await listSecrets(records)).map(({ key }) => key)
  },
}

async function modes() {
  const { OWN_MODES, OWN_TEMPLATES } = await import('../../modes/registry.ts')
  return { modes: OWN_MODES, templates: OWN_TEMPLATES }
}
