import * as v from 'valibot'
import { UserError } from '../../base/errors.ts'
import { hasPassed } from '../events/outcome.ts'
import { finding, gateStatus } from '../events/shapes.ts'
import { SANDBOX_MODES } from '../shapes/sandbox.ts'
import { type SessionState, sessionTokens } from '../state/state.ts'
import { type Check, type ContractState, lineOf, proofOf, runOf, sentencesOf, type Who } from './contract.ts'

/** Facts of a certificate that the journal lacks. */
interface CertificateFacts {
  /** The checked-out commit of the person's repository; null: no repository. */
  head: { commit: string | null; branch: string | null } | null
  /** True if that commit contains all accepted work; null: not known. */
  headHoldsAll: boolean | null
  /** The savepoint of the accepted work, a commit in the private git directory; null: none. */
  savepoint: string | null
  /** Files of the work directory outside of the tree. */
  notLookedAt: { paths: readonly string[]; count: number }
  versions: { codemachine: string; codex: string | null; node: string; platform: string }
  /** Returns a hash of a check's files. */
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
  /** Null: it did not run for the claim. */
  status: v.nullable(gateStatus),
  exitCode: v.nullable(v.number()),
  durationMs: v.nullable(count),
  /** Its result before round 1; null: it did not run then. */
  before: v.nullable(gateStatus),
  /** True if it was ever flaky in the session; left out by an older version. */
  wasFlaky: v.optional(v.boolean()),
  /** Paths that it changed during the claim, at most 50; left out by an older version. */
  changed: v.optional(v.array(text)),
  /** Its run without the work, as in the event `counter-proof`; null: not run, left out by an older version. */
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
  /** The command line, with its files' folder filled in. */
  run: text,
  timeoutMs: v.pipe(v.number(), v.integer(), v.minValue(1)),
  /** SHA-256 of its files, hex. */
  digest: text,
  /** Results before the work and at the claim; null: it did not run then. */
  before: v.nullable(gateStatus),
  status: v.nullable(gateStatus),
  /** True if it was ever flaky; left out by an older version. */
  wasFlaky: v.optional(v.boolean()),
})

const sentenceSchema = v.object({
  id: text,
  quote: text,
  kind: text,
  /** `proved`, `weak`, `holds` (no wrong version), `unusable`, `not-checkable`, `context`, or `refused` by the person. */
  state: text,
  reason: v.nullable(text),
  /** Problem of its checks, from results before the work; left out: none. */
  problem: v.optional(text),
  heldOut: v.boolean(),
  /** Number of wrong versions that count, and of those that were caught. */
  controls: v.object({ made: count, caught: count }),
  checks: v.array(checkSchema),
})

const ofRoles = v.object({ author: v.nullable(text), control: v.nullable(text), worker: v.nullable(text) })

const contractSchema = v.object({
  version: count,
  /** `person`, `default` or `controls`. */
  acceptedBy: v.nullable(text),
  /** The requested models; null: codex's own choice. */
  author: v.nullable(text),
  control: v.nullable(text),
  worker: v.nullable(text),
  /** Their engines; null: the worker's. Left out by an older version. */
  engines: v.optional(ofRoles),
  /** Their providers; null: the engine's configured one. Left out by an older version. */
  providers: v.optional(ofRoles),
  sentences: v.array(sentenceSchema),
  /** Parts of the goal that are in no sentence. */
  uncovered: v.array(text),
  /** The person's change of the goal that the contract does not cover; left out: none. */
  behind: v.optional(text),
})

const partSchema = v.object({
  worktree: text,
  branch: text,
  /** The merge commit. */
  commit,
  /** The worktree's newest finished session, and the tree that it was proved on; null: none. */
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
  /** True if there were gates, and each required one passed. */
  verified: v.boolean(),
  /** Strength of its proof; left out: no contract, see `verified`. */
  proof: v.optional(v.picklist(['proved', 'gates', 'none'])),
  /** The request, sentence by sentence; left out: it had no contract. */
  contract: v.optional(contractSchema),
  /** Fingerprint of the accepted work: a git tree hash. */
  tree: commit,
  savepoint: v.nullable(commit),
  /** Files of the work directory outside of the tree, at most 50 paths; left out by an older version. */
  notLookedAt: v.optional(v.object({ paths: v.array(text), count })),
  /** Null: no repository. `holdsAll`: true if the commit has exactly that tree; null: not known. */
  git: v.nullable(
    v.object({ commit: v.nullable(commit), branch: v.nullable(text), holdsAll: v.nullable(v.boolean()) }),
  ),
  /** Sandbox of gates and rounds. */
  sandbox: v.picklist(SANDBOX_MODES),
  network: v.boolean(),
  gates: v.array(gateSchema),
  /** Null: no review. `agreed`: to exactly the accepted tree. */
  review: v.nullable(v.object({ reviews: count, agreed: v.boolean(), open: v.array(finding) })),
  /** True if a gate protects files; else only the counter-proof shows weakened tests. Left out by old versions. */
  protected: v.optional(v.boolean()),
  /** Protected files that rounds changed, at most 50. */
  protectedChanged: v.array(text),
  /** Rounds that counted. */
  rounds: count,
  /** If other agents than codex worked: rounds started by engine, and the reviewer. Left out: codex alone. */
  engines: v.optional(
    v.object({
      rounds: v.record(text, count),
      /** The last 50 engine changes, each with its first round; left out: none, or an older version. */
      changes: v.optional(v.array(v.object({ round: count, from: text, to: text }))),
      /** Calls of agents with their own engine; left out: none, or an older version. */
      agents: v.optional(v.record(text, count)),
      review: v.optional(text),
      /** Hosts that an engine's agents and their commands reached; left out by an older version. */
      reached: v.optional(v.record(text, v.array(text))),
    }),
  ),
  tokens: count,
  /** Work time, ms. */
  timeMs: count,
  versions: v.object({ codemachine: text, codex: v.nullable(text), node: text, platform: text }),
  /** Worktrees that landed together; left out: the certificate is of one session. */
  parts: v.optional(v.array(partSchema)),
})

/** Content of `done.json`: what was proved of a finished session, and how. */
export type Certificate = v.InferOutput<typeof certificateSchema>

/** The share of one worktree in a landing. */
export type CertifiedPart = v.InferOutput<typeof partSchema>

/** A gate of a certificate. */
export type CertifiedGate = Certificate['gates'][number]

/** Size limit of a `done.json`, bytes. */
export const CERTIFICATE_BYTES = 8 * 1024 * 1024

/** Returns the certificate of a session that ended as done. Throws an `Error` for any other session. */
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

/** Returns which engines worked, for what, and their hosts; empty: codex alone. Pure. */
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

/** Returns the certificate's contract; empty: none was accepted. */
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

/** Returns a check's unique name in a certificate. */
function nameOfCheck(sentence: string, check: number): string {
  return `${sentence}, check ${check}`
}

/** A check of a certificate, as a gate that must pass again. */
export interface CheckToRun {
  gate: CertifiedGate
  sentence: string
  check: number
}

/** Returns the checks that passed at the end of the session, as gates. Pure. */
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

/** A person's demand of a certificate: every sentence proved, or at least that required gates passed. */
export type Required = 'proved' | 'gates'

/** Returns why a certificate does not meet the demand, a clause; null: it does. Pure. */
export function lackOf({ proof, verified, gates }: Certificate, required: Required): string | null {
  if (proof === 'proved') return null
  if (required === 'proved') return proof === undefined ? 'it had no contract' : 'not every sentence is proved'
  return verified && gates.some(gate => gate.required) ? null : 'no required gate passed'
}

/** Returns the text of a `done.json`. */
export function certificateText(certificate: Certificate): string {
  return `${JSON.stringify(certificate, null, 2)}\n`
}

/** Parses a `done.json`. Throws a `UserError` that names the file and the place if it is invalid. */
export function parseCertificate(json: string, path: string): Certificate {
  const value = parseJson(json)
  if (value === undefined)
    throw new UserError('CM0703', `${path} is not valid JSON, so it was damaged or changed by hand.`)
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
  return `${place} ${issue.input === undefined ? 'is missing' : 'has a wrong value'}`
}
