import { readFile, rm } from 'node:fs/promises'
import * as v from 'valibot'
import { writing } from '../base/disk-full.ts'
import { systemErrorCode } from '../base/errors.ts'
import { writeWholeFile } from '../platform/write-whole-file.ts'
import type { GuardedContent, GuardedEntry } from './guarded-files.ts'

/** Something in a git directory as it was. */
export interface Remembered {
  entry: GuardedEntry
  content: GuardedContent
}

/** A git directory as it was. */
export interface Baseline {
  /** It, and those of its submodules and worktrees. */
  directories: ReadonlySet<string>
  /** By absolute path. */
  entries: ReadonlyMap<string, Remembered>
}

/** What a guard goes by; absolute paths. */
export interface GuardState {
  /** Real path of the work directory. */
  workTree: string
  /** Where what a round had put there is moved to. */
  setAsideDir: string
  /** `.git` of the repository's top and of the work directory, as they were; null if there was nothing. */
  tops: Map<string, Remembered | null>
  /** By common directory. */
  guarded: Map<string, Baseline>
}

/** Writes the state to a file for this user only, whole or not at all. */
export async function writeGuardState(path: string, state: GuardState): Promise<void> {
  const stored: StoredState = {
    v: 1,
    workTree: state.workTree,
    setAsideDir: state.setAsideDir,
    tops: [...state.tops].map(([top, before]) => [top, before && toStored(before)]),
    guarded: [...state.guarded].map(([commonDir, { directories, entries }]) => ({
      commonDir,
      directories: [...directories],
      entries: [...entries].map(([path, remembered]) => [path, toStored(remembered)]),
    })),
  }
  await writing(path, () => writeWholeFile(path, JSON.stringify(stored)))
}

/** Reads what `writeGuardState` has written; null if there is no such file. Throws if it cannot be understood. */
export async function readGuardState(path: string): Promise<GuardState | null> {
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    if (systemErrorCode(error) === 'ENOENT') return null
    throw error
  })
  if (text === null) return null
  const { workTree, setAsideDir, tops, guarded } = v.parse(storedState, JSON.parse(text))
  return {
    workTree,
    setAsideDir,
    tops: new Map(tops.map(([top, before]) => [top, before && fromStored(before)])),
    guarded: new Map(
      guarded.map(({ commonDir, directories, entries }) => [
        commonDir,
        {
          directories: new Set(directories),
          entries: new Map(entries.map(([path, remembered]) => [path, fromStored(remembered)])),
        },
      ]),
    ),
  }
}

/** Removes it, if it is there. */
export async function removeGuardState(path: string): Promise<void> {
  await rm(path, { force: true })
}

const storedRemembered = v.object({
  kind: v.picklist(['file', 'link', 'directory', 'other']),
  key: v.string(),
  mode: v.number(),
  /** Base64 of a file's bytes or of a link's target; null if they could not be kept, or there are none. */
  bytes: v.nullable(v.string()),
})

const storedState = v.object({
  v: v.literal(1),
  workTree: v.string(),
  setAsideDir: v.string(),
  tops: v.array(v.tuple([v.string(), v.nullable(storedRemembered)])),
  guarded: v.array(
    v.object({
      commonDir: v.string(),
      directories: v.array(v.string()),
      entries: v.array(v.tuple([v.string(), storedRemembered])),
    }),
  ),
})

type StoredRemembered = v.InferOutput<typeof storedRemembered>
type StoredState = v.InferOutput<typeof storedState>

function toStored({ entry, content }: Remembered): StoredRemembered {
  const bytes = content.kind === 'file' ? content.bytes : content.kind === 'link' ? content.target : null
  return { ...entry, bytes: bytes === null ? null : bytes.toString('base64') }
}

function fromStored({ bytes, ...entry }: StoredRemembered): Remembered {
  return { entry, content: contentOf(entry.kind, bytes === null ? null : Buffer.from(bytes, 'base64')) }
}

function contentOf(kind: GuardedEntry['kind'], bytes: Buffer | null): GuardedContent {
  if (kind === 'directory') return { kind }
  if (bytes !== null && kind === 'file') return { kind, bytes }
  if (bytes !== null && kind === 'link') return { kind, target: bytes }
  return { kind: 'none' }
}
