import * as v from 'valibot'
import { hasPassed } from '../events/outcome.ts'
import { type Certificate, checksOf } from './certificate.ts'

/** Types of statements and predicates in a bundle. Codemachine's own are not network addresses. */
export const TYPES = {
  statement: 'https://in-toto.io/Statement/v1',
  testResult: 'https://in-toto.io/attestation/test-result/v0.1',
  verification: 'https://in-toto.io/attestation/svr/v0.1',
  session: 'https://codemachine.invalid/attestation/session/v1',
} as const

const VERIFIER = 'https://codemachine.invalid/verifier/v1'
/** Matches codemachine's predicate of any version. */
const SESSIONS = /^https:\/\/codemachine\.invalid\/attestation\/session\/v\d+$/

const text = v.string()
const hex = v.pipe(text, v.regex(/^[0-9a-f]+$/))

/** A ResourceDescriptor: it has at least a digest, a uri or its content. */
const resourceSchema = v.pipe(
  v.looseObject({
    name: v.optional(text),
    uri: v.optional(text),
    digest: v.optional(v.record(text, text)),
    content: v.optional(text),
  }),
  v.check(({ uri, digest, content }) => uri !== undefined || digest !== undefined || content !== undefined),
)

/** An in-toto statement with any predicate. */
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
  /** Number of attestations in the bundle; fewer: some were cut off. */
  attestations: whole,
  /** As in `done.json`, without the directory. */
  certificate: v.looseObject({ tree: hex, endedAt: text }),
  /** Files that belong to the tree although git ignores them. */
  lookedAt: v.array(text),
  /** Files of the contract's passed checks. */
  checks: v.array(v.object({ name: text, files: v.array(v.object({ path: text, text })) })),
  /** Refused done claims; at most the last 20 are listed. */
  refused: v.object({ count: whole, last: v.array(v.object({ round: whole, reason: text })) }),
})

/** A statement whose predicate was not checked. */
export type Statement = v.InferOutput<typeof statementSchema>

/** Codemachine's predicate, for facts that the public ones cannot express. */
export type SessionPredicate = v.InferOutput<typeof sessionSchema>

/** Facts of a bundle in addition to the certificate. */
export interface BundleFacts {
  /** A commit with the whole tree; null: none known. */
  commit: string | null
  lookedAt: readonly string[]
  checks: SessionPredicate['checks']
  refused: SessionPredicate['refused']
  /** Returns the hash of a text, hex. */
  sha256(text: string): string
}

/** Returns a finished session's statements: test results (unless nothing ran), verification, and the rest. Pure. */
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
  // The path on this machine is private.
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

/** Returns the true properties of the session, by their names in a verification. */
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

/** Returns the names of the checks to run again. Pure. */
export function namesOfChecks(certificate: Certificate): string[] {
  return checksOf(certificate).map(({ gate }) => gate.name)
}

/** Parses a statement, and its predicate if its type is known; or returns a clause about the fault. Pure. */
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

/** Returns codemachine's predicate of a statement from `readStatement`; null: another type. Pure. */
export function sessionIn({ predicateType, predicate }: Statement): SessionPredicate | null {
  return predicateType === TYPES.session ? v.parse(sessionSchema, predicate) : null
}

function placeOf(issue: v.BaseIssue<unknown>): string {
  const place = (issue.path ?? []).map(({ key }) => String(key)).join('.')
  return `${place || 'all of it'} ${issue.input === undefined ? 'is missing' : 'has a wrong value'}`
}
