import { randomUUID } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, isAbsolute, join, parse, relative } from 'node:path'
import { messageOf } from '../base/errors.ts'
import type { GuardedContent, GuardedEntry } from './guarded-files.ts'
import { putAside } from './put-aside.ts'

/** What was done about what a round had changed in the repository's config, hooks and info. */
export interface Restored {
  /** What was put back or taken away, relative to the work directory; absolute where it lies outside of it. */
  restored: readonly string[]
  /** The folder to which what the round had put there was moved; null if it had put nothing there. */
  setAside: string | null
  /** A sentence for each thing that could not be put right: the person has to look. */
  problems: readonly string[]
}

/** One putting right, and the account of it. Whatever fails is a problem in the account; nothing throws. */
export class Restoration {
  readonly #workTree: string
  readonly #setAsideDir: string
  readonly #restored = new Set<string>()
  readonly #problems: string[] = []
  #setAside: string | null = null

  constructor(workTree: string, setAsideDir: string) {
    this.#workTree = workTree
    this.#setAsideDir = setAsideDir
  }

  /** The account; null if there was nothing to do. */
  result(): Restored | null {
    if (this.#restored.size === 0 && this.#problems.length === 0) return null
    return { restored: [...this.#restored].sort(), setAside: this.#setAside, problems: this.#problems }
  }

  /** Moves what lies at a path to the records; false if it could not be moved. */
  putAside(path: string): boolean {
    return this.#try(path, 'could not be taken away', () => {
      this.#setAside ??= freeFolder(this.#setAsideDir)
      putAside(path, join(this.#setAside, pathInAside(this.#shown(path))))
    })
  }

  /** Writes back what was there, at a path where nothing is now. */
  write(path: string, { mode }: GuardedEntry, content: GuardedContent): void {
    if (content.kind === 'none') {
      this.problem(path, 'was changed, and could not be kept to be put back')
      return
    }
    this.#try(path, 'could not be put back', () => {
      mkdirSync(dirname(path), { recursive: true })
      if (content.kind === 'file') writeWhole(path, content.bytes, mode)
      else if (content.kind === 'link') symlinkSync(content.target, path)
      else mkdirSync(path, { mode })
    })
  }

  /** Gives a file or folder its mode back. */
  setMode(path: string, { kind, mode }: GuardedEntry): void {
    if (kind !== 'link') this.#try(path, 'could not be given its mode back', () => chmodSync(path, mode))
  }

  /** Adds to the account what the person has to look at. */
  problem(path: string, what: string): void {
    this.#problems.push(`${this.#shown(path)} ${what}.`)
  }

  #try(path: string, failure: string, action: () => void): boolean {
    try {
      action()
      this.#restored.add(this.#shown(path))
      return true
    } catch (error) {
      this.problem(path, `${failure}: ${messageOf(error)}`)
      return false
    }
  }

  #shown(path: string): string {
    const inside = relative(this.#workTree, path)
    return inside.startsWith('..') || isAbsolute(inside) ? path : inside
  }
}

function freeFolder(directory: string): string {
  for (let number = 1; ; number += 1) {
    const folder = join(directory, String(number).padStart(3, '0'))
    if (!existsSync(folder)) return folder
  }
}

function pathInAside(shown: string): string {
  return isAbsolute(shown) ? join('outside', shown.slice(parse(shown).root.length)) : shown
}

function writeWhole(path: string, bytes: Buffer, mode: number): void {
  const temporary = `${path}.${randomUUID()}`
  try {
    writeFileSync(temporary, bytes, { flag: 'wx' })
    chmodSync(temporary, mode)
    renameSync(temporary, path)
  } catch (error) {
    rmSync(temporary, { force: true })
    throw error
  }
}
