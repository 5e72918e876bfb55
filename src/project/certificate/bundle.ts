import { UserError } from '../../base/errors.ts'
import { isJsonObject, parsedOrNull } from '../../base/json.ts'
import {
  readStatement,
  type SessionPredicate,
  type Statement,
  sessionIn,
  TYPES,
} from '../../core/rules/attestations.ts'
import { CERTIFICATE_BYTES } from '../../core/rules/certificate.ts'
import { readBoundedText } from '../../platform/files.ts'

/** A statement of a bundle, with its signed bytes. */
interface Attestation {
  statement: Statement
  /** Null: not signed. */
  envelope: { signed: Buffer; signatures: readonly Buffer[] } | null
}

/** A bundle of a finished session, as read before its signature is checked. */
export interface Bundle {
  session: SessionPredicate
  /** Commit that holds all proved files; null: it names none. */
  commit: string | null
  /** The attestations that codemachine knows, all on the same subject. */
  attestations: readonly Attestation[]
}

const PAYLOAD = 'application/vnd.in-toto+json'
/** The payload type may also name the predicate. */
const PAYLOADS = /^application\/vnd\.in-toto(?:\.[a-z0-9-]+)?\+json$/
const BASE64 = /^[A-Za-z0-9+/_-]*={0,2}$/
/** Most lines of a bundle, and subjects of a statement. Ours has three lines and at most two subjects. */
const MOST_LINES = 1000
const MOST_SUBJECTS = 100
const MOST_SIGNATURES = 8

/** Returns the bytes to sign: the pre-authentication encoding of DSSE v1. */
export function signedBytes(type: string, payload: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`DSSEv1 ${Buffer.byteLength(type)} ${type} ${payload.length} `), payload])
}

/** Returns the text of a bundle: one statement per line, in an envelope if it is signed. */
export async function bundleText(
  statements: readonly Statement[],
  signer: { keyid: string; sign(data: Buffer): Promise<Buffer> } | null,
): Promise<string> {
  const lines: string[] = []
  for (const statement of statements) {
    const json = JSON.stringify(statement)
    if (signer === null) lines.push(json)
    else {
      const payload = Buffer.from(json)
      const sig = (await signer.sign(signedBytes(PAYLOAD, payload))).toString('base64')
      const signatures = [{ keyid: signer.keyid, sig }]
      lines.push(JSON.stringify({ payloadType: PAYLOAD, payload: payload.toString('base64'), signatures }))
    }
  }
  return lines.map(line => `${line}\n`).join('')
}

/** Returns the text of a bundle file. Throws a `UserError` if it is unreadable. */
export async function readBundleFile(path: string): Promise<string> {
  const read = await readBoundedText(path, CERTIFICATE_BYTES)
  if (read === 'missing')
    throw new UserError('CM0106', `The file ${path} does not exist; name the file of a certificate.`)
  if ('problem' in read) throw new UserError('CM0703', `${path} ${read.problem}; name the file of a certificate.`)
  return read.text
}

/** Parses a bundle. Throws a `UserError` that names `path` if it holds no session, was cut, or is of a newer version. */
export function parseBundle(text: string, path: string): Bundle {
  const lines = text.split('\n').filter(line => line.trim() !== '')
  if (lines.length > MOST_LINES)
    throw new UserError('CM0703', `${path} has ${lines.length} lines, but a certificate has at most ${MOST_LINES}.`)
  const read = lines.flatMap((line, at) => attestationIn(line, `${path}, line ${at + 1},`))
  const [first, second] = read.flatMap(({ statement }) => {
    const session = sessionIn(statement)
    return session === null ? [] : [{ statement, session }]
  })
  if (first === undefined)
    throw new UserError(
      'CM0703',
      `${path} contains no session of codemachine: it was cut, or another program wrote it.`,
    )
  if (second !== undefined)
    throw new UserError('CM0703', `${path} contains several sessions of codemachine; put each into its own file.`)
  const { statement, session } = first
  const { gitTree: tree = '' } = Object.assign({}, ...statement.subject.map(({ digest }) => digest))
  if (tree !== session.certificate.tree)
    throw new UserError('CM0703', `${path} was changed: its files are not the files of its session.`)
  const attestations = read.filter(each => isOurs(each.statement, JSON.stringify(statement.subject)))
  if (attestations.length < session.attestations)
    throw new UserError(
      'CM0703',
      `${path} was cut: it contains only ${attestations.length} of its ${session.attestations} attestations.`,
    )
  const commit = statement.subject.find(({ digest }) => digest.gitCommit !== undefined)?.digest.gitCommit ?? null
  return { session, commit, attestations }
}

function isOurs({ predicateType, subject }: Statement, ofSession: string): boolean {
  const isKnown = [TYPES.testResult, TYPES.verification, TYPES.session].some(type => type === predicateType)
  return isKnown && JSON.stringify(subject) === ofSession
}

/** Returns none for a line that is no attestation: readers of a bundle ignore unknown ones. */
function attestationIn(line: string, where: string): Attestation[] {
  const value = parsedOrNull(line)
  if (!isJsonObject(value)) return []
  if (!('payload' in value)) return '_type' in value ? [{ statement: statementIn(value, where), envelope: null }] : []
  const { payload, payloadType, signatures } = value
  if (typeof payloadType !== 'string' || !PAYLOADS.test(payloadType)) return []
  const bytes = bytesOf(payload)
  const said = Array.isArray(signatures)
    ? signatures.slice(0, MOST_SIGNATURES).map(each => bytesOf(Object(each).sig))
    : []
  if (bytes === null || said.includes(null) || said.length === 0)
    throw new UserError('CM0703', `${where} is damaged: its payload or signature is missing or is not base64.`)
  const signed = signedBytes(payloadType, bytes)
  const statement = statementIn(parsedOrNull(bytes.toString()), where)
  return [{ statement, envelope: { signed, signatures: said.filter(each => each !== null) } }]
}

function bytesOf(text: unknown): Buffer | null {
  return typeof text === 'string' && BASE64.test(text) ? Buffer.from(text, 'base64') : null
}

function statementIn(value: unknown, where: string): Statement {
  const statement = readStatement(value)
  if (typeof statement === 'string')
    throw new UserError(statement.startsWith('is of a newer') ? 'CM0704' : 'CM0703', `${where} ${statement}.`)
  if (statement.subject.length > MOST_SUBJECTS)
    throw new UserError(
      'CM0703',
      `${where} has ${statement.subject.length} subjects, but a statement has at most ${MOST_SUBJECTS}.`,
    )
  return statement
}
