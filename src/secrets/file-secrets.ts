import { closeSync, constants, fstatSync, openSync, readSync, statSync } from 'node:fs'
import { messageOf, systemErrorCode } from '../base/errors.ts'
import type { Secret } from '../base/redactor.ts'
import { nameLooksSecret, valueLooksSecret } from './looks-secret.ts'

const MOST_BYTES = 1024 * 1024

/** What tells one state of a file from another; null if there is none that can be read. */
export function stampOf(path: string): string | null {
  try {
    const stat = statSync(path, { bigint: true, throwIfNoEntry: false })
    return stat === undefined ? null : [stat.ino, stat.size, stat.mtimeNs, stat.ctimeNs].join(' ')
  } catch (error) {
    if (systemErrorCode(error) === null) throw error
    return null
  }
}

/**
 * The tokens and keys in a JSON file of at most 1 MiB, whatever its shape: texts under a key that looks secret, and long
 * texts without a space. None in a file that is missing, or is none of that. Synchronous, so that nothing that may hold
 * one is let through meanwhile.
 */
export function secretsInFile(path: string): Secret[] {
  const text = readBounded(path)
  if (text === null) return []
  try {
    return [...secretsIn(JSON.parse(text), null, false)]
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof RangeError) return []
    throw new Error(`${path}: ${messageOf(error)}`, { cause: error })
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

/** Long, in one piece, and neither an address nor the id of an account. */
function looksRandom(text: string): boolean {
  return (
    /^[\w.~+/=-]{32,}$/.test(text) && /\d/.test(text) && !/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text)
  )
}

function readBounded(path: string): string | null {
  let fd: number | null = null
  try {
    // Without O_NONBLOCK (absent on Windows) the opening of a named pipe waits for its other end.
    fd = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
    const stat = fstatSync(fd)
    if (!stat.isFile() || stat.size > MOST_BYTES) return null
    const bytes = Buffer.alloc(stat.size)
    return bytes.toString('utf8', 0, readSync(fd, bytes, 0, stat.size, 0))
  } catch (error) {
    if (systemErrorCode(error) === null) throw error
    return null
  } finally {
    if (fd !== null) closeSync(fd)
  }
}
