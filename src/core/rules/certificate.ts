import * as v from 'valibot'
import { UserError } from '../../base/errors.ts'
import { hasPassed } from '../events/outcome.ts'
import { finding, gateStatus } from '../events/shapes.ts'
import { SANDBOX_MODES } from '../shapes/sandbox.ts'
import { type SessionState, sessionTokens } from '../state/state.ts'
import { type Check, type ContractState, lineOf, proofOf, runOf, sentencesOf, type Who } from './contract.ts'

/** What of a certificate the journal does not say. */
interface CertificateFacts {
  /** What the person's repository has checked out; null without a repository. */
  head: { commit: string | null; branch: string | null } | null
  /** Whether that commit holds all that was accepted; null if that cannot be known. */
  headHoldsAll: boolean | null
  /** The savepoint that holds what was accepted, a commit in the private git directory; null if there is none. */
  savepoint: string | null
  /** What lay in the work directory and is no part of the tree. */
  notLookedAt: { paths: readonly string[]; count: number }
  versions: { codemachine: string; codex: string | null; node: string; platform: string }
  /** A hash of the files of a check. */
  digestOf(check: Check): string
}

const text = v.string()
const count = v.pipe(v.number(), v.minValue(0))
const commit = v.pipe(text, v.regex(/^(?:[0-9a-f]{40}|[0-9a-f]{64})$/))
const moment = v.pipe(text, v.isoTimestamp())

const gateSchema = v.object({
  name: text,
  run: text,
  required: v.boolean(),
  network: v.boolean(),
  timeoutMs: v.pipe(v.number(), v.integer(), v.minValue(1)),
  /** Null if it did not run when done was claimed. */
  status: v.nullable(gateStatus),
  exitCode: v.nullable(v.number()),
  durationMs: v.nullable(count),
  /** How it had come out before round 1; null if it did not run then. */
  before: v.nullable(gateStatus),
  /** Whether it came out flaky at any time of the session; left out by an older version. */
  wasFlaky: v.optional(v.boolean()),
  /** What it changed itself when it ran for the claim, at most 50 paths; left out by an older version. */
  changed: v.optional(v.array(text)),
  /** What came of running it without the work, as in the event `counter-proof`; null if it was not, left out by an older version. */
  counterProof: v.optional(
    v.nullable(
      v.object({
        result: text,
        problem: v.nullable(text),
        made: v.array(text),
        madeCount: count,
        isSmallest: v.boolean(),
        doubts: v.array(text),
      }),
    ),
  ),
})

const checkSchema = v.object({
  /** `S1, check 1`. */
  name: text,
  /** With the folder of its files filled in. */
  run: text,
  timeoutMs: v.pipe(v.number(), v.integer(), v.minValue(1)),
  /** SHA-256 of its files, hex. */
  digest: text,
  /** Before the work, null if it did not run then; and when done was claimed. */
  before: v.nullable(gateStatus),
  status: v.nullable(gateStatus),
  /** Whether it came out flaky at any time; left out by an older version. */
  wasFlaky: v.optional(v.boolean()),
})

const sentenceSchema = v.object({
  id: text,
  quote: text,
  kind: text,
  /** `proved`, `weak`, `holds` (without any wrong version), `unusable`, `not-checkable`, `context`, or `refused` by the person. */
  state: text,
  reason: v.nullable(text),
  /** What is wrong with its checks by how they came out before the work; left out: nothing. */
  problem: v.optional(text),
  heldOut: v.boolean(),
  /** Wrong versions that count, and how many of them were noticed. */
  controls: v.object({ made: count, caught: count }),
  checks: v.array(checkSchema),
})

const ofRoles = v.object({ author: v.nullable(text), control: v.nullable(text), worker: v.nullable(text) })

const contractSchema = v.object({
  version: count,
  /** `person`, `default` or `controls`. */
  acceptedBy: v.nullable(text),
  /** The models as asked for; null: codex's own choice. */
  author: v.nullable(text),
  control: v.nullable(text),
  worker: v.nullable(text),
  /** Their engines; null: that of the worker. Left out by an older version. */
  engines: v.optional(ofRoles),
  /** Their providers; null: what the engine is configured with. Left out by an older version. */
  providers: v.optional(ofRoles),
  sentences: v.array(sentenceSchema),
  /** What of the goal is in no sentence. */
  uncovered: v.array(text),
  /** What the person changed of the goal that the contract does not know; left out: nothing. */
  behind: v.optional(text),
})

const partSchema = v.object({
  worktree: text,
  branch: text,
  /** The merge. */
  commit,
  /** The newest session of the worktree that was done, and the files that it was proved on; null: there was none. */
  session: v.nullable(text),
  tree: v.nullable(commit),
})

const certificateSchema = v.object({
  format: v.literal('codemachine-done'),
  /** 2: of a session with a contract. */
  v: v.picklist([1, 2]),
  session: text,
  goal: text,
  /** The work directory, absolute. */
  directory: text,
  startedAt: moment,
  endedAt: moment,
  /** Gates were there, and every one that is required passed. */
  verified: v.boolean(),
  /** How far it is proved; left out: it had no contract, so that `verified` says it. */
  proof: v.optional(v.picklist(['proved', 'gates', 'none'])),
  /** What was asked for, sentence by sentence; left out: it had no contract. */
  contract: v.optional(contractSchema),
  /** Fingerprint of what was accepted: a git tree hash. */
  tree: commit,
  savepoint: v.nullable(commit),
  /** What lay in the work directory and is no part of the tree, at most 50 paths; left out by an older version. */
  notLookedAt: v.optional(v.object({ paths: v.array(text), count })),
  /** Null without a repository. `holdsAll`: the commit alone has that very tree; null: not known. */
  git: v.nullable(
    v.object({ commit: v.nullable(commit), branch: v.nullable(text), holdsAll: v.nullable(v.boolean()) }),
  ),
  /** Under which the gates ran, as the rounds did. */
  sandbox: v.picklist(SANDBOX_MODES),
  network: v.boolean(),
  gates: v.array(gateSchema),
  /** Null if there was none. `agreed`: to the very tree that was accepted. */
  review: v.nullable(v.object({ reviews: count, agreed: v.boolean(), open: v.array(finding) })),
  /** Whether a gate protects files; if none does, only the counter-proof shows whether tests were weakened. Left out by an older version. */
  protected: v.optional(v.boolean()),
  /** The protected files that rounds have changed, at most 50. */
  protectedChanged: v.array(text),
  /** Rounds that counted. */
  rounds: count,
  /** Where another agent than codex worked: the rounds that began on each engine, and who reviewed; left out: codex alone. */
  engines: v.optional(
    v.object({
      rounds: v.record(text, count),
      /** The last 50 changes between them, each with the round that began so; left out: none, or an older version. */
      changes: v.optional(v.array(v.object({ round: count, from: text, to: text }))),
      /** Calls of agents that have an engine of their own; left out: none, or an older version. */
      agents: v.optional(v.record(text, count)),
      review: v.optional(text),
      /** Hosts that agents of an engine reached, and their commands with them; left out by an older version. */
      reached: v.optional(v.record(text, v.array(text))),
    }),
  ),
  tokens: count,
  /** Time that it was worked on, ms. */
  timeMs: count,
  versions: v.object({ codemachine: text, codex: v.nullable(text), node: text, platform: text }),
  /** The worktrees whose work landed together; left out: it is of one session. */
  parts: v.optional(v.array(partSchema)),
})

/** What `done.json` holds: what was proved of a session that is done, and with what. */
export type Certificate = v.InferOutput<typeof certificateSchema>

/** What one worktree brought to a landing. */
export type CertifiedPart = v.InferOutput<typeof partSchema>

/** A gate in it. */
export type CertifiedGate = Certificate['gates'][number]

/** The most that is read of a `done.json`, bytes. */
export const CERTIFICATE_BYTES = 8 * 1024 * 1024

/** The certificate of a session that has ended as done; any other is an error of the caller. */
export function certificateOf(state: SessionState, facts: CertificateFacts): Certificate {
  const { claim, ended, contract } = state
  if (claim.state !== 'accepted' || ended?.outcome.kind !== 'done') throw new Error(`${state.id} is not done.`)
  return {
    format: 'codemachine-done',
    v: contract === null ? 1 : 2,
    session: state.id,
    goal: state.goal,
    directory: state.directory,
    startedAt: new Date(state.createdAt).toISOString(),
    endedAt: new Date(state.updatedAt).toISOString(),
    verified: ended.outcome.verified,
    ...(contract === null ? {} : { proof: proofOf(contract, claim.verified), ...contractPart(contract, facts) }),
    tree: claim.tree,
    savepoint: facts.savepoint,
    notLookedAt: { paths: [...facts.notLookedAt.paths], count: facts.notLookedAt.count },
    git: facts.head && { ...facts.head, holdsAll: facts.headHoldsAll },
    sandbox: v.parse(certificateSchema.entries.sandbox, state.sandbox),
    network: state.network,
    gates: state.gates.map(({ name, run, required, network, timeoutMs }) => {
      const result = claim.results.find(({ gate }) => gate === name)
      return {
        name,
        run,
        required,
        network,
        timeoutMs,
        status: result?.status ?? null,
        exitCode: result?.exitCode ?? null,
        durationMs: result?.durationMs ?? null,
        before: state.before.find(({ gate }) => gate === name)?.status ?? null,
        wasFlaky: state.flakyGates.includes(name),
        changed: [...(result?.changed ?? [])],
        counterProof: counterProofOf(state, name, claim.tree),
      }
    }),
    review: reviewOf(state, claim.tree),
    protected: state.gates.some(({ protect }) => protect.length > 0),
    protectedChanged: [...state.protectedChanged],
    rounds: state.roundsUsed,
    ...enginesPart(state),
    tokens: sessionTokens(state),
    timeMs: ended.durationMs,
    versions: facts.versions,
  }
}

/** Which engines worked, for what, and where they reached; nothing where codex alone did. Pure. */
export function enginesPart(state: SessionState): Pick<Certificate, 'engines'> {
  const { roundsOfEngines: rounds, agentsOfEngines, engineChanges, review, reachOfEngines } = state
  const reviewer = review?.engine ?? null
  const names = Object.keys({ ...rounds, ...agentsOfEngines, ...reachOfEngines })
  if (reviewer === null && names.every(name => name === 'codex')) return {}
  const reached = Object.fromEntries(Object.entries(reachOfEngines).map(([name, hosts]) => [name, [...hosts]]))
  return {
    engines: {
      rounds,
      ...(engineChanges.length === 0 ? {} : { changes: [...engineChanges] }),
      ...(Object.keys(agentsOfEngines).length === 0 ? {} : { agents: agentsOfEngines }),
      ...(reviewer === null ? {} : { review: reviewer }),
      ...(Object.keys(reached).length === 0 ? {} : { reached }),
    },
  }
}

/** What a certificate says of the contract; nothing where none was accepted. */
function contractPart(contract: ContractState, { digestOf }: CertificateFacts): Pick<Certificate, 'contract'> {
  const { frozen, who, acceptedBy, behind } = contract
  if (frozen === null) return {}
  const sentences = sentencesOf(contract).map(
    ({ id, quote, kind, state, reason, flaw, isHeldOut, made, caught, checks }) => ({
      id,
      quote,
      kind,
      state,
      reason,
      ...(flaw === null ? {} : { problem: flaw }),
      heldOut: isHeldOut,
      controls: { made, caught },
      checks: checks.map((check, at) => ({
        name: nameOfCheck(id, at + 1),
        run: lineOf(id, at + 1, check.run),
        timeoutMs: check.seconds * 1000,
        digest: digestOf(check),
        before: runOf(frozen.before, id, at + 1)?.status ?? null,
        status: runOf(contract.runs, id, at + 1)?.status ?? null,
        wasFlaky: runOf(contract.runs, id, at + 1)?.isFlaky ?? false,
      })),
    }),
  )
  const of = (key: keyof Who) => ({
    author: who.author?.[key] ?? null,
    control: who.control?.[key] ?? null,
    worker: who.worker?.[key] ?? null,
  })
  return {
    contract: {
      ...{
        version: frozen.version,
        acceptedBy,
        ...of('model'),
        engines: of('engine'),
        providers: of('provider'),
        sentences,
      },
      uncovered: [...frozen.uncovered],
      ...(behind === null ? {} : { behind: behind.text }),
    },
  }
}

/** By which a check is told apart in a certificate. */
function nameOfCheck(sentence: string, check: number): string {
  return `${sentence}, check ${check}`
}

/** A check of a certificate, as a gate that has to pass as it did. */
export interface CheckToRun {
  gate: CertifiedGate
  sentence: string
  check: number
}

/** The checks that passed when the session was done, as gates. Pure. */
export function checksOf({ contract }: Certificate): CheckToRun[] {
  return (contract?.sentences ?? []).flatMap(({ id, checks }) =>
    checks.flatMap(({ name, run, timeoutMs, before, status }, at): CheckToRun[] => {
      if (status === null || !hasPassed(status)) return []
      const gate = { name, run, timeoutMs, required: true, network: false, status, exitCode: 0, durationMs: 0, before }
      return [{ gate, sentence: id, check: at + 1 }]
    }),
  )
}

function counterProofOf({ counterProofs }: SessionState, gate: string, tree: string): CertifiedGate['counterProof'] {
  const proof = counterProofs.find(each => each.gate === gate && each.tree === tree)
  if (proof === undefined) return null
  const { result, problem, made, madeCount, isSmallest, doubts } = proof
  return { result, problem, made: [...made], madeCount, isSmallest, doubts: [...doubts] }
}

function reviewOf({ reviews }: SessionState, tree: string): Certificate['review'] {
  if (reviews.last === null) return null
  return { reviews: reviews.answered, agreed: reviews.agreedTo === tree, open: [...reviews.last.findings] }
}

/** What a person may require of a certificate: every sentence proved, or at least that required gates passed. */
export type Required = 'proved' | 'gates'

/** Why a certificate does not say what is required, a clause; null: it does. Pure. */
export function lackOf({ proof, verified, gates }: Certificate, required: Required): string | null {
  if (proof === 'proved') return null
  if (required === 'proved') return proof === undefined ? 'it had no contract' : 'not every sentence is proved'
  return verified && gates.some(gate => gate.required) ? null : 'no required gate passed'
}

/** The text of a `done.json`. */
export function certificateText(certificate: Certificate): string {
  return `${JSON.stringify(certificate, null, 2)}\n`
}

/** Reads a `done.json`; a `UserError` that names the file and the place if it is none. */
export function parseCertificate(json: string, path: string): Certificate {
  const value = parseJson(json)
  if (value === undefined) throw new UserError('CM0703', `${path} is not JSON: it was damaged or changed by hand.`)
  const { format, v: version } = Object(value)
  if (format !== 'codemachine-done') throw new UserError('CM0703', `${path} is not a certificate of codemachine.`)
  if (version !== 1 && version !== 2) {
    throw new UserError(
      'CM0704',
      `${path} is a certificate of another version of codemachine; use that version to verify it.`,
    )
  }
  const result = v.safeParse(certificateSchema, value, { abortEarly: true })
  if (result.success) return result.output
  throw new UserError('CM0703', `${path}: ${placeOf(result.issues[0])}; it was damaged or changed by hand.`)
}

function parseJson(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return undefined
  }
}

function placeOf(issue: v.BaseIssue<unknown>): string {
  const place = (issue.path ?? [])
    .map(({ key }) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`))
    .join('')
    .slice(1)
  return `${place} ${issue.input === undefined ? 'is missing' : 'is not what it has to be'}`
}
