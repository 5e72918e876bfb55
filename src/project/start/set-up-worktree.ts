import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Interrupted, UserError, unreachable } from '../../base/errors.ts'
import { lastLines } from '../../base/text.ts'
import { type CommandEnd, openSandboxCommands } from '../../engines/codex/sandbox-commands.ts'
import { pathExists, writeWholeFile } from '../../platform/files.ts'
import { shellWord } from '../../platform/shell-word.ts'
import { openRecords, type Records } from '../../session/records/records.ts'
import { formatDuration } from '../../tell/words/numbers.ts'
import { oneLine } from '../../tell/words/safe-text.ts'
import { findRepository } from '../../workspace/git/git.ts'
import { whileGuarded } from '../../workspace/guard/repository-guard.ts'
import { openSandboxTraces } from '../../workspace/sandbox-traces.ts'
import { copyIgnored } from '../../workspace/worktree/copy-ignored.ts'
import { openUntrustedWorktree } from '../../workspace/worktree/land.ts'
import { listUncommitted, openCheckout, type Worktree } from '../../workspace/worktree/worktree.ts'
import { chooseCodex, codexOptionsOf, writableGit } from '../engine-of-project.ts'
import type { RunOptions } from '../library.ts'
import { holdWorkDirectory, settingsOf, WAIT_FOR_ITS_END } from '../open-run.ts'
import { reachesNetwork } from '../settings/gates.ts'
import type { LoadedSettings } from '../settings/load.ts'
import { directoryOf, type World } from '../world.ts'

/** Returns whether a set-up began in a worktree and has not succeeded since. */
export async function isSetUpPending(records: Records): Promise<boolean> {
  return await pathExists(pendingPath(records))
}

function pendingPath({ folder }: Records): string {
  return join(folder, 'worktree-setup-pending')
}

/**
 * Copies the files of `worktree.copy` into a worktree without sessions, and runs `worktree.setup` there. Throws a
 * `UserError` if that fails: the next start sets it up again.
 * @param options of the run; `directory`: in the checkout
 * @param say receives sentences for the person
 */
export async function setUpWorktree(
  world: World,
  worktree: Worktree,
  options: RunOptions,
  say: (sentence: string) => void,
): Promise<void> {
  const loaded = await settingsOf(world, worktree.directory, options)
  const { copy, setup } = loaded.settings.worktree
  if (copy.length === 0 && setup === null) return
  const checkout = await openCheckout(directoryOf(world, options), world.env)
  const there = await openUntrustedWorktree(checkout, worktree.top)
  const place = loaded.sources['worktree.copy'].place
  const from = checkout.repository.root
  for (const path of await copyIgnored(there, { from, to: worktree.top, paths: copy, place }))
    say(`${place}: there is no ${path} in ${from} to copy.`)
  const records = await openRecords({ ...world, directory: worktree.directory })
  const isAgain = await isSetUpPending(records)
  if (setup !== null) {
    // Do not take files of an earlier set-up for the person's.
    const before = isAgain ? [] : await listUncommitted(there, 'no')
    await runSetUp(world, records, { setup, loaded, options, worktree }, say)
    const changed = (await listUncommitted(await openUntrustedWorktree(checkout, worktree.top), 'no')).filter(
      path => !before.includes(path),
    )
    if (changed.length > 0) throw changedFiles(worktree, setup, changed, logPath(records))
  }
  if (isAgain || setup !== null) await rm(pendingPath(records), { force: true })
}

function logPath({ folder }: Records): string {
  return join(folder, 'worktree-setup.log')
}

interface SetUp {
  setup: string
  loaded: LoadedSettings
  options: RunOptions
  worktree: Worktree
}

/** Runs it in the sandbox like a command of the session. */
async function runSetUp(
  world: World,
  records: Records,
  { setup, loaded, options, worktree }: SetUp,
  say: (sentence: string) => void,
): Promise<void> {
  const { settings } = loaded
  const codex = await chooseCodex(world, records, loaded)
  const commands = await codexOptionsOf(world, records, codex, {
    settings,
    overrides: options.config ?? [],
    onWarning: say,
  })
  const repository = await findRepository(records.directory)
  await using _held = await holdWorkDirectory(world, records, say, WAIT_FOR_ITS_END)
  await using _traces = await openSandboxTraces([records.directory], records.traces)
  await writeWholeFile(pendingPath(records), '')
  const { setupMinutes } = settings.worktree
  say(`Sets it up first: ${oneLine(setup, 200)}`)
  const guard = {
    repository,
    workTree: records.directory,
    setAsideDir: join(records.folder, 'set-aside'),
    baselineFile: records.guard,
    leaveOut: [records.root],
    reach: { env: world.env, sandbox: settings.sandbox },
  }
  await whileGuarded(guard, { say, what: 'The set-up changed what your git runs' }, async () => {
    await using door = openSandboxCommands({
      ...commands,
      directory: records.directory,
      sandbox: {
        mode: settings.sandbox,
        network: settings.network,
        writable: writableGit(records.directory, repository),
      },
    })
    const end = await door.run({
      run: setup,
      network: reachesNetwork(settings),
      timeoutMs: setupMinutes * 60_000,
      signal: world.signal,
    })
    const log = logPath(records)
    const text = codex.redactor.text(end.output)
    await writeWholeFile(log, `$ ${codex.redactor.text(setup)}\n${text}\n${wordsForEnd(end, setupMinutes)}\n`)
    if (end.kind === 'broken-off') throw new Interrupted(world.signal.reason)
    if (end.kind !== 'exited' || end.exitCode !== 0) throw failed(worktree, end, { setup, text, log, setupMinutes })
  })
}

function wordsForEnd(end: CommandEnd, minutes: number): string {
  switch (end.kind) {
    case 'exited':
      return `ended with exit code ${end.exitCode} after ${formatDuration(end.durationMs)}`
    case 'timed-out':
      return `did not finish in ${minutes} minutes (worktree.setup_minutes)`
    case 'broken-off':
      return 'was interrupted'
    case 'not-started':
      return `could not be run: ${end.problem}`
    default:
      return unreachable(end)
  }
}

/** Exit code 4: a person must fix it. */
function failed(
  { name, top }: Worktree,
  end: CommandEnd,
  { setup, text, log, setupMinutes }: { setup: string; text: string; log: string; setupMinutes: number },
): UserError {
  const last = oneLine(lastLines(text, 300).trim().split('\n').at(-1) ?? '', 300)
  const said = last === '' ? '' : ` Its last line: ${last}`
  return new UserError(
    'CM0509',
    `The worktree ${top} is not set up, and no session has begun: worktree.setup (${oneLine(setup, 200)}) ${oneLine(wordsForEnd(end, setupMinutes), 600)}.${said}`,
    { hint: `Its output: ${log}\n  ${again(name)}`, exitCode: 4 },
  )
}

function changedFiles({ name, top }: Worktree, setup: string, changed: readonly string[], log: string): UserError {
  const shown = changed.slice(0, 8).map(path => oneLine(path, 200))
  const more = changed.length > shown.length ? ` and ${changed.length - shown.length} more` : ''
  return new UserError(
    'CM0509',
    `No session has begun in ${top}: worktree.setup (${oneLine(setup, 200)}) changed files that git tracks: ${shown.join(', ')}${more}.`,
    {
      hint: `Restore them (git -C ${shellWord(top)} restore .) and use a command that does not change them (npm ci, not npm install). Or commit them. Its output: ${log}\n  ${again(name)}`,
      exitCode: 4,
    },
  )
}

function again(name: string): string {
  return `To set it up again, and continue: codemachine --worktree ${name} "…"`
}
