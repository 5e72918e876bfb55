import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { type Certificate, type CertifiedGate, checksOf } from '../../core/rules/certificate.ts'
import { type Records, recordsOf } from '../../session/records/records.ts'
import { fromLatin1 } from '../../workspace/git/git.ts'
import type { LandingTarget } from '../../workspace/worktree/land.ts'
import { type Checkout, runGitIn } from '../../workspace/worktree/worktree.ts'
import { newestAtWork } from '../find.ts'
import { settingsOf } from '../open-run.ts'
import { findCertificate, newestProved } from '../proof/verify.ts'
import type { World } from '../world.ts'

/** Proof that one side of a merge demands. */
export interface Demand {
  gates: readonly DemandedGate[]
  /** `key=value` pairs for codex. */
  overrides: readonly string[]
  /** Globs of files that belong to the tree although git ignores them. */
  lookedAt: readonly string[]
}

/** A gate or check that a merge must pass. */
export interface DemandedGate {
  /** The gate, with a unique name. */
  gate: CertifiedGate
  /** Its folder, relative to the top of the work tree; empty: the top. */
  folder: string
  /** Files of a check while it runs; none: it is a gate. */
  files: readonly { path: string; text: string }[]
  /** Whether the landing's certificate names it: checks of earlier work are not demanded again. */
  isKept: boolean
}

/** Last proof below the top of a work tree. */
export interface ProvedBefore {
  certificate: Certificate
  /** Whether no newer session has begun there. */
  isNewest: boolean
  demand: Demand
}

/**
 * Returns the last proof in a work tree, in its top folder or one of these; null: none.
 * @param of the name for its checks, and whether to keep them
 */
export async function provedBefore(
  own: Records,
  { top, folders }: { top: string; folders: readonly string[] },
  of: { name: string; keepsChecks: boolean },
  say: (remark: string) => void,
): Promise<ProvedBefore | null> {
  const known = new Set(await readdir(join(own.root, 'state')))
  const places = [top, ...folders].map(folder => recordsOf(own, folder)).filter(({ key }) => known.has(key))
  let last: { records: Records; id: string; at: number } | null = null
  for (const records of places) {
    const newest = await newestProved(records, say)
    if (newest !== null && (last === null || newest.at > last.at)) last = { records, ...newest }
  }
  if (last === null) return null
  const { records, id } = last
  const { certificate, overrides, lookedAt, filesOf } = await findCertificate(records, id, say)
  const folder = relative(top, records.directory)
  const required = certificate.gates.filter(gate => gate.required)
  const all = [...required, ...checksOf(certificate).map(({ gate }) => gate)].map((gate): DemandedGate => {
    const files = filesOf(gate.name)
    const isCheck = files.length > 0
    const name = isCheck ? `${of.name}: ${gate.name}` : gate.name
    return { gate: { ...gate, name }, folder, files, isKept: !isCheck || of.keepsChecks }
  })
  return { certificate, isNewest: (await newestAtWork(records)) === id, demand: { gates: all, overrides, lookedAt } }
}

/** Returns the demands of the target's settings; for a branch that is not checked out, those of its last commit. */
export async function demandOfSettings(
  world: World,
  checkout: Checkout,
  target: LandingTarget,
  { directory, temporary }: Records,
): Promise<Demand> {
  const folder = relative(checkout.repository.root, directory)
  const { gates } = target.isCheckedOut
    ? await settingsOf(world, directory, {})
    : await settingsInCommit(world, checkout, { commit: target.commit, folder, temporary })
  const required = gates.filter(gate => gate.required)
  const none = { status: null, exitCode: null, durationMs: null, before: null }
  const demanded = required.map(({ name, run, network, timeoutMs }): DemandedGate => {
    return { gate: { name, run, required: true, network, timeoutMs, ...none }, folder, files: [], isKept: true }
  })
  return { gates: demanded, overrides: [], lookedAt: [] }
}

async function settingsInCommit(
  world: World,
  checkout: Checkout,
  { commit, folder, temporary }: { commit: string; folder: string; temporary: string },
): ReturnType<typeof settingsOf> {
  const path = join(folder, SETTINGS_FILE).replaceAll('\\', '/')
  const { ok, stdout } = await runGitIn(checkout, ['cat-file', 'blob', `${commit}:${path}`])
  const there = await mkdtemp(join(temporary, 'settings-'))
  try {
    if (ok) await writeFile(join(there, SETTINGS_FILE), fromLatin1(stdout))
    return await settingsOf(world, there, {})
  } finally {
    await rm(there, { recursive: true, force: true })
  }
}

const SETTINGS_FILE = 'codemachine.toml'

/** Joins several sides' demands. It takes the first of equal gates (command and folder), with unique names. */
export function together(demands: readonly Demand[]): Demand {
  const gates: DemandedGate[] = []
  const isSame = (one: DemandedGate, other: DemandedGate) =>
    one.folder === other.folder &&
    one.gate.run === other.gate.run &&
    JSON.stringify(one.files) === JSON.stringify(other.files)
  for (const each of demands.flatMap(demand => demand.gates)) {
    if (gates.some(other => isSame(each, other))) continue
    const names = new Set(gates.map(({ gate }) => gate.name))
    let { name } = each.gate
    for (let n = 2; names.has(name); n++) name = `${each.gate.name} (${n})`
    gates.push({ ...each, gate: { ...each.gate, name } })
  }
  return {
    gates,
    overrides: [...new Set(demands.flatMap(({ overrides }) => overrides))],
    lookedAt: [...new Set(demands.flatMap(({ lookedAt }) => lookedAt))],
  }
}
