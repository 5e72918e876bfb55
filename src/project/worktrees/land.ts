import { join, relative } from 'node:path'
import { Cleanup, Interrupted, UserError, unreachable } from '../../base/errors.ts'
import { version } from '../../base/package.ts'
import type { CertifiedPart } from '../../core/rules/certificate.ts'
import { shellWord } from '../../platform/shell-word.ts'
import { openRecords, type Records } from '../../session/records/records.ts'
import { takeRunLock } from '../../session/records/run-lock.ts'
import { formatCount } from '../../tell/words/numbers.ts'
import { oneLine } from '../../tell/words/safe-text.ts'
import { treeOfCommit } from '../../workspace/git/commits.ts'
import { fromLatin1, GitStopped } from '../../workspace/git/git.ts'
import {
  advanceWorktreeBranch,
  commitUncommitted,
  type LandableBranch,
  type LandingTarget,
  listLandableBranches,
  type MergeAside,
  mergeAside,
  moveTarget,
  openUntrustedWorktree,
  readTarget,
  unbroken,
} from '../../workspace/worktree/land.ts'
import { type Checkout, checkWorktreeName, openCheckout, runGitIn } from '../../workspace/worktree/worktree.ts'
import { refuseRunning } from '../find.ts'
import { type OpenWorkDirectory, openWorkDirectory } from '../open-run.ts'
import { passes } from '../proof/find-break.ts'
import type { CommandsWanted } from '../proof/gates-again.ts'
import { nextLandingId, writeLanding } from '../proof/landing-record.ts'
import type { World } from '../world.ts'
import { type Demand, demandOfSettings, type ProvedBefore, provedBefore, together } from './demands.ts'
import { type ProvedGate, proveMerge } from './prove-merge.ts'

/** How to land work. */
export interface LandingTerms extends Omit<CommandsWanted, 'overrides'> {
  /** Message of the merge; left out: one that names the branch. */
  message?: string | undefined
  /** Message with which to commit the worktree's uncommitted changes first; left out: do not commit them. */
  commit?: string | undefined
  /** Whether to prove the merge first. */
  verify: boolean
}

/** Result of landing a worktree. */
export interface Landed {
  worktree: string
  branch: string
  /** Its top folder; null: removed. */
  top: string | null
  into: string
  /** The merge; null: nothing new. */
  commit: string | null
  files: number
  /** Newest finished session of the worktree; null: none. */
  session: string | null
  /** Gates that ran on the merge. */
  gates: readonly ProvedGate[]
}

/** Error: a gate fails on a merge. */
export class MergeFails extends UserError {
  readonly gates: readonly ProvedGate[]

  constructor(message: string, gates: readonly ProvedGate[], hint: string) {
    super('CM0519', message, { hint, exitCode: 4 })
    this.gates = gates
  }
}

/** Where to land work: the checkout around a directory, and one of its branches. */
export interface LandingPlace {
  checkout: Checkout
  target: LandingTarget
  records: Records
}

/**
 * Finds where to land work. Throws a `UserError` if that is impossible.
 * @param onto the branch; null: the one that is checked out
 */
export async function findLandingPlace(world: World, directory: string, onto: string | null): Promise<LandingPlace> {
  const opened = await openCheckout(directory, world.env)
  const checkout = { ...opened, setting: { ...opened.setting, signal: world.signal } }
  return await orInterrupted(world, async () => {
    const target = await readTarget(checkout, onto)
    return { checkout, target, records: await openRecords({ ...world, directory }) }
  })
}

/** Runs an action. If git was stopped with the program, throws `Interrupted`. */
async function orInterrupted<T>({ signal }: World, action: () => Promise<T>): Promise<T> {
  try {
    return await action()
  } catch (error) {
    throw error instanceof GitStopped ? new Interrupted(signal.reason) : error
  }
}

/**
 * Merges a worktree's finished work into a branch while nothing runs in either, if the merge passes all gates of both sides.
 * Throws a `UserError` if it is not merged.
 * @param name of the worktree; left out: the only one that has something to land
 */
export async function landWorktree(
  world: World,
  place: LandingPlace,
  { name, ...terms }: LandingTerms & { name?: string | undefined },
): Promise<Landed & { record: string | null }> {
  const chosen = await orInterrupted(world, () => (name === undefined ? theOnly(place) : named(place, name)))
  await refuseRunningIn(world, place, chosen)
  await using landing = await Landing.open(world, place, terms)
  const landed = await landing.land(chosen.name)
  return { ...landed, record: landing.record }
}

/** A landing of worktrees, one after the other; it holds the checkout meanwhile. */
export class Landing implements AsyncDisposable {
  readonly #world: World
  readonly #place: LandingPlace
  readonly #terms: LandingTerms
  readonly #work: OpenWorkDirectory
  readonly #opened: Cleanup
  readonly #startedAt: number
  /** Demands of everything that landed. */
  readonly #demands: Demand[] = []
  /** Demands of earlier work on the target; null: not read yet. */
  #ofTarget: Demand[] | null = null
  readonly #parts: CertifiedPart[] = []
  #record: string | null = null

  private constructor(
    world: World,
    place: LandingPlace,
    terms: LandingTerms,
    { work, opened }: { work: OpenWorkDirectory; opened: Cleanup },
  ) {
    this.#world = world
    this.#place = place
    this.#terms = terms
    this.#work = work
    this.#opened = opened
    this.#startedAt = world.clock.now()
  }

  /** Throws a `UserError` with exit code 6 while a codemachine runs in the checkout. */
  static async open(world: World, place: LandingPlace, terms: LandingTerms): Promise<Landing> {
    await using opened = new Cleanup()
    const { checkout, records } = place
    const { root } = checkout.repository
    if (root !== records.directory) opened.use(await hold(world, root))
    const work = opened.use(await openWorkDirectory(world, records, terms.say, { hint: TO_LAND_AGAIN }))
    return new Landing(world, place, terms, { work, opened: opened.move() })
  }

  /** Id of the landing's record; null: nothing landed. */
  get record(): string | null {
    return this.#record
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#opened[Symbol.asyncDispose]()
  }

  /** Lands a worktree. Throws, with nothing changed: a `UserError` if not merged, `Interrupted` if the program ends. */
  async land(name: string): Promise<Landed> {
    return await orInterrupted(this.#world, async () => {
      const chosen = await named(this.#place, name)
      await refuseRunningIn(this.#world, this.#place, chosen)
      await using _worktree = chosen.top === null ? null : await hold(this.#world, chosen.top)
      return await this.#land(chosen)
    })
  }

  async #land(chosen: LandableBranch): Promise<Landed> {
    const { checkout, target } = this.#place
    const { branch, top, uncommitted } = chosen
    const { message = `Merge branch '${branch}'`, commit, verify } = this.#terms
    if (uncommitted.length > 0 && commit === undefined) throw notCommitted(chosen)
    const aside = uncommitted.length === 0 || top === null ? null : await commitUncommitted(checkout, top, commit ?? '')
    const merge = await mergeAside(checkout, target, { branch, aside, message })
    const before = await this.#provedIn(chosen)
    const landed = {
      worktree: chosen.name,
      branch,
      top,
      into: target.branch,
      session: before?.certificate.session ?? null,
    }
    if (merge.kind === 'nothing-new') return { ...landed, commit: null, files: 0, gates: [] }
    if (merge.kind !== 'merged') throw this.#refusal(branch, merge)
    const demand = together([...(before === null ? [] : [before.demand]), ...(await this.#demandsOfTarget())])
    const proved = verify ? await this.#prove(chosen, merge, demand) : { gates: [], codex: null }
    const inTheWay = await moveTarget(checkout, target, merge, { branch, aside, top })
    if (inTheWay.length > 0) throw this.#refusal(branch, { kind: 'in-the-way', files: inTheWay })
    // It has landed: later steps are not interrupted, and undo nothing.
    this.#place.target = { ...target, commit: merge.commit }
    if (before !== null) this.#demands.push(before.demand)
    const { session = null, tree = null } = before?.certificate ?? {}
    this.#parts.push({ worktree: chosen.name, branch, commit: merge.commit, session, tree })
    try {
      if (aside !== null && top !== null) await advanceWorktreeBranch(unbroken(checkout), top, aside)
      await this.#keep(demand, proved)
    } catch (error) {
      if (!(error instanceof UserError)) throw error
      this.#terms.say(error.message)
    }
    return { ...landed, commit: merge.commit, files: merge.files, gates: proved.gates }
  }

  async #provedIn({ name, branch, top }: LandableBranch): Promise<ProvedBefore | null> {
    const { checkout, records } = this.#place
    if (top === null) return null
    const folders = await foldersOf(checkout, top, branch)
    return await provedBefore(records, { top, folders }, { name, keepsChecks: true }, this.#terms.say)
  }

  /** Returns the demands of landed work, then of the target's last proof and its settings. */
  async #demandsOfTarget(): Promise<Demand[]> {
    const { checkout, target, records } = this.#place
    if (this.#ofTarget === null) {
      const { root } = checkout.repository
      const folders = await foldersOf(checkout, root, target.commit)
      const of = { name: target.branch, keepsChecks: false }
      const before = await provedBefore(records, { top: root, folders }, of, this.#terms.say)
      const settings = await demandOfSettings(this.#world, checkout, target, records)
      this.#ofTarget = [...(before === null ? [] : [before.demand]), settings]
    }
    return [...this.#demands, ...this.#ofTarget]
  }

  async #prove({ name, branch, top }: LandableBranch, { commit }: MergeAside, demand: Demand) {
    const { checkout, target, records } = this.#place
    const worktree = top === null ? null : await openUntrustedWorktree(checkout, top)
    const merge = { commit, into: target.branch, worktree }
    const proved = await proveMerge(this.#world, records, this.#work, merge, demand, this.#terms)
    const failing = proved.gates.filter(({ ran }) => !passes(ran))
    if (failing.length === 0) return proved
    const names = failing.map(({ gate }) => oneLine(gate.name, 100)).join(', ')
    throw new MergeFails(
      `The merge of ${branch} into ${target.branch} fails these gates: ${names}. codemachine changed nothing.`,
      proved.gates,
      [
        ...failing.flatMap(outputOf),
        `To fix it, resume its session. To land it all the same: codemachine land ${name} --no-verify`,
      ].join('\n  '),
    )
  }

  /** Writes the certificate of everything that has landed so far. */
  async #keep(demand: Demand, { gates: proved, codex }: { gates: readonly ProvedGate[]; codex: string | null }) {
    const { checkout, target, records } = this.#place
    const { clock, node, platform } = this.#world
    const { directory } = records
    const own = relative(checkout.repository.root, directory)
    const runs = new Map(proved.map(({ gate, ran }) => [gate.name, ran]))
    const kept = demand.gates.filter(({ isKept, files, folder }) => isKept && (files.length === 0 || folder === own))
    const tree = await this.#work.fingerprints.mending(git => treeOfCommit(git, target.commit))
    if (tree === null) throw new Error(`${target.commit} has no files of ${directory}.`)
    this.#record ??= await nextLandingId(records, new Date(clock.now()))
    await writeLanding(records, {
      certificate: {
        format: 'codemachine-done',
        v: 1,
        session: this.#record,
        goal: `Land ${this.#parts.map(({ worktree }) => worktree).join(', ')} on ${target.branch}`,
        directory,
        startedAt: new Date(this.#startedAt).toISOString(),
        endedAt: new Date(clock.now()).toISOString(),
        verified: proved.length > 0,
        tree,
        savepoint: null,
        git: { commit: target.commit, branch: target.branch, holdsAll: true },
        sandbox: 'workspace-write',
        network: kept.some(({ gate }) => gate.network),
        gates: kept.map(({ gate: { name, run, network, timeoutMs }, folder }) => {
          const { status = null, exitCode = null, durationMs = null } = runs.get(name) ?? {}
          const line = folder === own ? run : `cd ${shellWord(relative(own, folder) || '.')} && ${run}`
          return { name, run: line, required: true, network, timeoutMs, status, exitCode, durationMs, before: null }
        }),
        review: null,
        protectedChanged: [],
        rounds: 0,
        tokens: 0,
        timeMs: clock.now() - this.#startedAt,
        versions: { codemachine: version, codex, node, platform },
        parts: this.#parts,
      },
      overrides: [...demand.overrides],
      lookedAt: [...demand.lookedAt],
      checks: kept.flatMap(({ gate, files }) => (files.length === 0 ? [] : [{ name: gate.name, files: [...files] }])),
    })
  }

  #refusal(branch: string, { kind, files }: { kind: 'conflict' | 'in-the-way'; files: readonly string[] }): UserError {
    const { checkout, target } = this.#place
    const { root } = checkout.repository
    switch (kind) {
      case 'conflict':
        return new UserError(
          'CM0513',
          `${branch} and ${target.branch} both changed ${some(files)}. codemachine merged nothing.`,
          { hint: `To merge by hand: git -C ${shellWord(root)} merge ${branch}`, exitCode: 4 },
        )
      case 'in-the-way':
        return new UserError(
          'CM0512',
          `${branch} would overwrite uncommitted changes in ${root}: ${some(files)}. codemachine changed nothing.`,
          { hint: 'Commit or move these files, and land again.' },
        )
      default:
        return unreachable(kind)
    }
  }
}

const TO_LAND_AGAIN = 'Wait until that session ends, or end it with codemachine stop. Then land again.'

/** Keeps runs out of a directory until it is disposed of. */
async function hold(world: World, directory: string): Promise<AsyncDisposable> {
  const { lock, directory: held } = await openRecords({ ...world, directory })
  return await takeRunLock(lock, { ...world, directory: held, now: new Date(world.clock.now()), hint: TO_LAND_AGAIN })
}

async function refuseRunningIn(
  world: World,
  { checkout }: LandingPlace,
  { branch, top }: Pick<LandableBranch, 'branch' | 'top'>,
): Promise<void> {
  if (top !== null) await refuseRunning(world, top, () => foldersOf(checkout, top, branch))
}

async function named({ checkout, target }: LandingPlace, name: string): Promise<LandableBranch> {
  const wanted = checkWorktreeName(name.replace(/^codemachine\//, ''))
  const [found] = await listLandableBranches(checkout, wanted, target.commit)
  if (found !== undefined) return found
  const all = await listLandableBranches(checkout, null, target.commit)
  throw new UserError(
    'CM0511',
    `There is no branch codemachine/${wanted}.`,
    all.length === 0 ? {} : { hint: listed(all) },
  )
}

async function theOnly({ checkout, target }: LandingPlace): Promise<LandableBranch> {
  const all = await listLandableBranches(checkout, null, target.commit)
  const full = all.filter(hasWork)
  const candidates = full.length === 0 ? all : full
  const [only, ...others] = candidates
  if (only === undefined) {
    throw new UserError('CM0511', 'There is nothing to land: codemachine has made no worktree here.', {
      hint: 'To work in a worktree: codemachine "…" --worktree',
    })
  }
  if (others.length === 0) return only
  throw new UserError('CM0511', 'There is more than one branch to land; name one, or land all with --queue.', {
    hint: listed(candidates),
  })
}

/** Returns whether a branch or its worktree has work that the target lacks. */
export function hasWork({ ahead, uncommitted }: LandableBranch): boolean {
  return ahead > 0 || uncommitted.length > 0
}

function listed(all: readonly LandableBranch[]): string {
  return all.map(each => `${each.name}: ${stateOf(each)}`).join('\n  ')
}

/** Describes the content of a branch and its worktree in a few words. */
export function stateOf({ ahead, uncommitted, top }: LandableBranch): string {
  const changes = uncommitted.length === 0 ? '' : `, ${formatCount(uncommitted.length, 'change')} not committed`
  return `${formatCount(ahead, 'commit')}${changes}${top === null ? ', worktree removed' : ''}`
}

function notCommitted({ name, top, uncommitted }: LandableBranch): UserError {
  return new UserError('CM0512', `${top} has uncommitted changes, which would not be landed: ${some(uncommitted)}.`, {
    hint: `To commit them first: codemachine land ${name} --commit "…"`,
  })
}

/** Returns the committed folders of a work tree, absolute. */
export async function foldersOf(checkout: Checkout, top: string, commit: string): Promise<string[]> {
  const { stdout } = await runGitIn(checkout, ['ls-tree', '-r', '-d', '-z', '--name-only', '--full-tree', commit])
  const names = fromLatin1(stdout).split('\0')
  return names.filter(name => name !== '').map(name => join(top, name))
}

/** Returns the last output lines of a gate. */
function outputOf({ gate, ran }: ProvedGate): string[] {
  const lines = ran.output.split('\n').filter(line => line.trim() !== '')
  const shown = lines.slice(-MOST_LINES).map(line => `  ${oneLine(line, 200)}`)
  return [`${oneLine(gate.name, 100)}: ${ran.problem === null ? ran.status : oneLine(ran.problem, 300)}`, ...shown]
}

const MOST_LINES = 20
const MOST_SHOWN = 20

function some(files: readonly string[]): string {
  const shown = files.slice(0, MOST_SHOWN).map(file => oneLine(file, 200))
  const more = files.length - shown.length
  return `${shown.join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}
