import { readdirSync } from 'node:fs'
import { basename, join } from 'node:path'
import type { Clock } from '../base/clock.ts'
import { messageOf, systemErrorCode } from '../base/errors.ts'
import { isShortSecret, problemOfKey, problemOfValue, type Secret } from '../core/shapes/secrets.ts'
import { readBoundedNow, stampOf } from '../platform/files.ts'
import { type Redactor, redactorOf } from './redactor.ts'
import { nameLooksSecret, secretVariables, valueLooksSecret } from './variables.ts'

/** A redactor that learns secrets while it is used. */
export interface LearningRedactor extends Redactor {
  /** Reloads, so that newly stored secrets are known on return. */
  refresh(): void
}

/**
 * Opens a redactor of secrets in an environment, in codex's home (absolute path) and of a project: those in its records
 * folder, in every form. `keys`: names of variables that are secret by decision. Reloads codex's files and the folder when
 * they change, and still knows earlier secrets.
 */
export function openRedactor(options: {
  env: Readonly<NodeJS.ProcessEnv>
  /** Null: no codex home. */
  codexHome: string | null
  /** `Records.secrets`; left out: no project. */
  project?: string
  clock: Clock
  keys?: readonly string[]
}): LearningRedactor {
  const { env, codexHome, project, clock, keys = [] } = options
  const variables = secretVariables(env, keys)
  const places = [
    ...(codexHome === null ? [] : FILES.map(name => ({ path: join(codexHome, name), read: secretsInFile }))),
    ...(project === undefined ? [] : [{ path: project, read: secretsOfProject }]),
  ].map(place => ({ ...place, stamp: '' as string | null }))
  const tokens = new Map<string, Secret>()
  const ofProject = new Map<string, Secret>()
  let lookedAt = Number.NEGATIVE_INFINITY
  let redactor = redactorOf(variables)
  const look = () => {
    lookedAt = clock.monotonic()
    let isNew = false
    for (const place of places) {
      const stamp = stampOf(place.path)
      if (stamp === place.stamp) continue
      place.stamp = stamp
      for (const secret of place.read(place.path)) {
        const known = secret.isEncoded ? ofProject : tokens
        isNew ||= !known.has(secret.value)
        known.set(secret.value, secret)
      }
    }
    // Project secrets first, so that one that is also in the environment is found in every form.
    if (isNew) redactor = redactorOf([...newest(ofProject), ...variables, ...newest(tokens)])
  }
  const current = (): Redactor => {
    if (clock.monotonic() - lookedAt >= LOOK_MS) look()
    return redactor
  }
  return {
    text: text => current().text(text),
    event: event => current().event(event),
    line: line => current().line(line),
    unfinished: text => current().unfinished(text),
    refresh() {
      for (const place of places) if (place.read === secretsOfProject) place.stamp = ''
      look()
    },
  }
}

function newest(secrets: ReadonlyMap<string, Secret>): Secret[] {
  return [...secrets.values()].slice(-MOST_KEPT)
}

/** Codex's login, and that of its MCP servers. */
const FILES = ['auth.json', '.credentials.json']
/** Shortest time between two checks of them, ms: codex renews its tokens, and a person stores secrets. */
const LOOK_MS = 200
/** Limit of remembered tokens, and of a project's secrets; the oldest go first. More than codex renews in a night. */
const MOST_KEPT = 200

const MOST_BYTES = 1024 * 1024

/**
 * Returns tokens and keys in a JSON file of at most 1 MiB, of any shape: texts under a secret-looking key, and long texts
 * without a space. Empty: the file is missing, too long or not JSON. Synchronous: no text may pass before the file is read.
 */
function secretsInFile(path: string): Secret[] {
  const text = readBoundedNow(path, MOST_BYTES)?.toString('utf8') ?? null
  if (text === null) return []
  try {
    return [...secretsIn(JSON.parse(text), null, false)]
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof RangeError) return []
    throw new Error(`${path}: ${messageOf(error)}`, { cause: error })
  }
}

/**
 * Returns the secrets in a folder, one `KEY.json` each; its time changes with each write. Skips values too short to search
 * for, and unreadable ones, which no command gets either.
 */
function secretsOfProject(folder: string): Secret[] {
  return namesIn(folder).flatMap(name => {
    const text = readBoundedNow(join(folder, name), MOST_BYTES)?.toString('utf8') ?? null
    const value = text === null ? null : valueIn(text)
    const isLookedFor = value !== null && problemOfValue(value) === null && !isShortSecret(value)
    return isLookedFor ? [{ name: basename(name, '.json'), value, isEncoded: true as const }] : []
  })
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
      .filter(name => name.endsWith('.json') && problemOfKey(basename(name, '.json')) === null)
      .slice(0, MOST_KEPT)
  } catch (error) {
    if (systemErrorCode(error) === null) throw error
    return []
  }
}

function valueIn(text: string): string | null {
  try {
    const { value } = JSON.parse(text)
    return typeof value === 'string' ? value : null
  } catch {
    return null
  }
}

function* secretsIn(value: unknown, name: string | null, isSecret: boolean): Generator<Secret> {
  if (typeof value === 'string') {
    const own = name ?? 'text'
    if (valueLooksSecret(own, value) && (isSecret || looksRandom(value))) yield { name: own, value }
  } else if (typeof value === 'object' && value !== null) {
    for (const [key, child] of Object.entries(value)) {
      const own = Array.isArray(value) ? name : key
      yield* secretsIn(child, own, Array.isArray(value) ? isSecret : nameLooksSecret(key))
    }
  }
}

/** Returns true for a long text in one piece, neither a URL nor an account id. */
function looksRandom(text: string): boolean {
  return (
    /^[\w.~+/=-]{32,}$/.test(text) && /\d/.test(text) && !/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text)
  )
}
