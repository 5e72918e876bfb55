import * as v from 'valibot'
import { hasPassed } from '../events/outcome.ts'
import { type Certificate, checksOf } from './certificate.ts'

/** The type of each statement, and of each predicate in a bundle. Those of codemachine name no place in the network. */
export const TYPES = {
  statement: 'https://in-toto.io/Statement/v1',
  testResult: 'https://in-toto.io/attestation/test-result/v0.1',
  verification: 'https://in-toto.io/attestation/svr/v0.1',
  session: 'https://codemachine.invalid/attestation/session/v1',
} as const

const VERIFIER = 'https://codemachine.invalid/verifier/v1'
/** By which a predicate of ours, of any version, is known. */
const SESSIONS = /^https:\/\/codemachine\.invalid\/attestation\/session\/v\d+$/

const text = v.string()
const hex = v.pipe(text, v.regex(/^[0-9a-f]+$/))

/** A ResourceDescriptor: what is named by a digest at the least, a uri, or its content. */
const resourceSchema = v.pipe(
  v.looseObject({
    name: v.optional(text),
    uri: v.optional(text),
    digest: v.optional(v.record(text, text)),
    content: v.optional(text),
  }),
  v.check(({ uri, digest, content }) => uri !== undefined || digest !== undefined || content !== undefined),
)

/** An in-toto statement, whatever its predicate. */
const statementSchema = v.looseObject({
  _type: v.literal(TYPES.statement),
  subject: v.pipe(v.array(v.looseObject({ name: v.optional(text), digest: v.record(text, text) })), v.minLength(1)),
  predicateType: text,
  predicate: v.optional(v.looseObject({})),
})

const names = v.optional(v.array(text))

const testResultSchema = v.looseObject({
  result: v.picklist(['PASSED', 'WARNED', 'FAILED']),
  configuration: v.array(resourceSchema),
  url: v.optional(text),
  passedTests: names,
  warnedTests: names,
  failedTests: names,
})

const verificationSchema = v.looseObject({
  verifier: v.looseObject({ id: v.pipe(text, v.url()) }),
  timeCreated: v.pipe(text, v.isoTimestamp()),
  properties: v.array(text),
})

const whole = v.pipe(v.number(), v.integer(), v.minValue(0))

const sessionSchema = v.looseObject({
  /** How many attestations the bundle holds: of fewer, some were cut off. */
  attestations: whole,
  /** As in `done.json`, without the directory. */
  certificate: v.looseObject({ tree: hex, endedAt: text }),
  /** What counts as part of the tree although git ignores it. */
  lookedAt: v.array(text),
  /** The files of the checks of the contract that passed. */
  checks: v.array(v.object({ name: text, files: v.array(v.object({ path: text, text })) })),
  /** Claims of done that were refused; at most the last 20 are listed. */
  refused: v.object({ count: whole, last: v.array(v.object({ round: whole, reason: text })) }),
})

/** A statement whose predicate has not been looked at. */
export type Statement = v.InferOutput<typeof statementSchema>

/** The predicate of ours, which holds what the public ones have no place for. */
export type SessionPredicate = v.InferOutput<typeof sessionSchema>

/** What a bundle says beside the certificate of a session. */
export interface BundleFacts {
  /** A commit that holds the whole tree; null: none is known. */
  commit: string | null
  lookedAt: readonly string[]
  checks: SessionPredicate['checks']
  refused: SessionPredicate['refused']
  /** Of a text, hex. */
  sha256(text: string): string
}

/** The statements of a session that is done: its test results, unless nothing ran, what was verified, and the rest. Pure. */
export function statementsOf(certificate: Certificate, facts: BundleFacts): Statement[] {
  const { commit, lookedAt, checks, refused } = facts
  const subject = [
    { name: 'files', digest: { gitTree: certificate.tree } },
    ...(commit === null ? [] : [{ name: 'commit', digest: { gitCommit: commit } }]),
  ]
  const of = (predicateType: string, predicate: Record<string, unknown>): Statement => ({
    _type: TYPES.statement,
    subject,
    predicateType,
    predicate,
  })
  const tested = testResultOf(certificate, facts)
  const verification = {
    verifier: { id: VERIFIER },
    timeCreated: certificate.endedAt,
    properties: propertiesOf(certificate),
  }
  // Where it lies on the machine is nobody else's business.
  const { directory: _, ...rest } = certificate
  const before = [...(tested === null ? [] : [of(TYPES.testResult, tested)]), of(TYPES.verification, verification)]
  const session = { attestations: before.length + 1, certificate: rest, lookedAt, checks, refused }
  return [...before, of(TYPES.session, session)]
}

function testResultOf(
  certificate: Certificate,
  { sha256, checks: files }: BundleFacts,
): v.InferOutput<typeof testResultSchema> | null {
  const { sandbox, network } = certificate
  const ran = [...certificate.gates, ...checkRuns(certificate)].filter(({ status }) => status !== null)
  if (ran.length === 0) return null
  const named = (which: (run: (typeof ran)[number]) => boolean) => ran.filter(which).map(({ name }) => name)
  const isWarned = ({ status, wasFlaky }: (typeof ran)[number]) =>
    status === 'flaky' || (status === 'passed' && wasFlaky === true)
  const failed = ran.filter(({ status }) => status === null || !hasPassed(status))
  const lines = ran.map(({ name, run, timeoutMs }) => {
    return { name, digest: { sha256: sha256(run) }, annotations: { run, timeoutMs } }
  })
  const ofFiles = files.flatMap(check =>
    check.files.map(file => ({ name: `${check.name}: ${file.path}`, digest: { sha256: sha256(file.text) } })),
  )
  const settings = { sandbox, network }
  return {
    result: failed.some(({ required }) => required)
      ? 'FAILED'
      : failed.length > 0 || ran.some(isWarned)
        ? 'WARNED'
        : 'PASSED',
    configuration: [
      ...lines,
      ...ofFiles,
      { name: 'settings', digest: { sha256: sha256(JSON.stringify(settings)) }, annotations: settings },
    ],
    passedTests: named(run => run.status === 'passed' && !isWarned(run)),
    warnedTests: named(isWarned),
    failedTests: failed.map(({ name }) => name),
  }
}

function checkRuns({ contract }: Certificate) {
  return (contract?.sentences ?? []).flatMap(({ checks }) => checks.map(check => ({ ...check, required: true })))
}

/** What of the session holds, each by the name that it has in a verification. */
function propertiesOf(certificate: Certificate): string[] {
  const { verified, proof, review, gates, protectedChanged } = certificate
  const required = gates.filter(gate => gate.required)
  const holds: Record<string, boolean> = {
    GATES_PASSED:
      required.length > 0 && required.every(({ status }) => status !== null && hasPassed(status)) && verified,
    PROTECTED_UNCHANGED: certificate.protected === true && protectedChanged.length === 0,
    REVIEWED: review?.agreed === true,
    CONTRACT_PROVED: proof === 'proved',
    COUNTER_PROVED: required.length > 0 && required.every(({ counterProof }) => counterProof?.result === 'stands'),
  }
  return Object.keys(holds)
    .filter(name => holds[name])
    .map(name => `CODEMACHINE_${name}`)
}

/** The checks that are run again, by their names. Pure. */
export function namesOfChecks(certificate: Certificate): string[] {
  return checksOf(certificate).map(({ gate }) => gate.name)
}

/** A statement, with its predicate where that is of a type known here; or a clause that says what is wrong with it. Pure. */
export function readStatement(value: unknown): Statement | string {
  const read = v.safeParse(statementSchema, value, { abortEarly: true })
  if (!read.success) return `is no in-toto statement: ${placeOf(read.issues[0])}`
  const { predicateType, predicate } = read.output
  if (SESSIONS.test(predicateType) && predicateType !== TYPES.session)
    return `is of a newer codemachine (${predicateType.slice(-40)})`
  const schema = SCHEMAS[predicateType]
  const result = schema && v.safeParse(schema, predicate, { abortEarly: true })
  if (result?.success === false) return `has a predicate that does not fit its type: ${placeOf(result.issues[0])}`
  return read.output
}

const SCHEMAS: Readonly<Record<string, v.GenericSchema>> = {
  [TYPES.testResult]: testResultSchema,
  [TYPES.verification]: verificationSchema,
  [TYPES.session]: sessionSchema,
}

/** The predicate of ours in a statement that `readStatement` has read; null if it is of another type. Pure. */
export function sessionIn({ predicateType, predicate }: Statement): SessionPredicate | null {
  return predicateType === TYPES.session ? v.parse(sessionSchema, predicate) : null
}

function placeOf(issue: v.BaseIssue<unknown>): string {
  const place = (issue.path ?? []).map(({ key }) => String(key)).join('.')
  return `${place || 'all of it'} ${issue.input === undefined ? 'is missing' : 'is not what it has to be'}`
}
