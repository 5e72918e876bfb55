import { readdir, realpath } from 'node:fs/promises'
import { systemErrorCode, UserError } from '../../base/errors.ts'
import type { EventOf } from '../../core/events/events.ts'
import { findCommands } from '../../workspace/context/commands.ts'
import { readManifests } from '../../workspace/context/manifests.ts'

/** Likely command of the project's own tests, the file that names it, and other findings. */
export type ProjectTests = NonNullable<EventOf<'session-created'>['tests']>

/** Value of `--verify` for this command. */
const AUTO = 'auto'

/**
 * Returns the commands of `--verify`, with the project's test command instead of `auto`. `tests`: null without `auto`.
 * Throws a `UserError` for `auto` without such a command.
 */
export async function withProjectTests(
  directory: string,
  verify: readonly string[],
): Promise<{ verify: readonly string[]; tests: ProjectTests | null }> {
  if (!verify.includes(AUTO)) return { verify, tests: null }
  const tests = await findProjectTests(directory)
  if (tests === null)
    throw new UserError(
      'CM0701',
      '--verify auto found no test command in this project; name one, such as --verify "npm test".',
    )
  return { verify: verify.map(run => (run === AUTO ? tests.run : run)), tests }
}

/** Finds that command in the manifests at the top of a work directory, and runs nothing; null: none. */
export async function findProjectTests(directory: string): Promise<ProjectTests | null> {
  const root = await realpath(directory)
  const project = { root, redact: (text: string) => text }
  const paths = [...(await namesIn(root)), ...(await namesIn(root, 'tests')), ...(await namesIn(root, 'test'))]
  const top = paths.filter(path => !path.includes('/'))
  const { manifests } = await readManifests(project, top, NEVER)
  const found = (await findCommands(project, paths, manifests))
    .filter(({ run, kind }) => kind === 'test' || /^(?:make|just|task|rake) check$/.test(run))
    .map((command, at) => ({ ...command, rank: [rankOf(command.from), USUAL.test(command.run) ? 0 : 1, at] as const }))
    .sort(({ rank: [a, b, c] }, { rank: [x, y, z] }) => a - x || b - y || c - z)
  const [first, ...others] = found
  return first === undefined
    ? null
    : { run: first.run, from: first.from, others: others.slice(0, MOST_OTHERS).map(({ run }) => run) }
}

const NEVER = new AbortController().signal
const MOST_OTHERS = 5
/** A test script with the usual name wins over `test:unit` and others. */
const USUAL = / test$/

/** A person's own script for the project wins over the language's default. */
function rankOf(from: string): number {
  const at = ORDER.findIndex(name => name.test(from))
  return at === -1 ? ORDER.length : at
}

const ORDER = [
  /^package\.json$/,
  /makefile$/i,
  /^\.?justfile$/i,
  /^Taskfile/,
  /^deno\.jsonc?$/,
  /^pyproject\.toml$|^requirements/,
  /^Cargo\.toml$/,
  /^go\.mod$/,
  /^pom\.xml$/,
  /^build\.gradle/,
  /^Gemfile$|^Rakefile$/,
  /^composer\.json$/,
  /^mix\.exs$/,
]

async function namesIn(root: string, folder = ''): Promise<string[]> {
  const names = await readdir(`${root}/${folder}`).catch((error: unknown) => {
    if (systemErrorCode(error) === null) throw error
    return []
  })
  return names.map(name => (folder === '' ? name : `${folder}/${name}`))
}
