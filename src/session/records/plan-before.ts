import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import * as v from 'valibot'
import type { MemoryTexts } from '../../core/shapes/memory.ts'
import { readBoundedText, succeeds, writeWholeFile } from '../../platform/files.ts'

/** The last change of a session's plan: its files before and after it. */
export interface KeptPlan {
  before: MemoryTexts
  after: MemoryTexts
}

/**
 * The plan's files before its last change: `plan-before.json` in the session's folder of the records, where no agent can
 * write.
 */
export interface PlanBefore {
  /** Stores them, mode 0600, and replaces an earlier change; false if there is no room, and then nothing is kept. */
  keep(plan: KeptPlan): Promise<boolean>
  /** Returns the stored files; null if there are none, or they cannot be read. */
  read(): Promise<KeptPlan | null>
  /** Removes the stored files. */
  drop(): Promise<void>
}

/** Most characters of the four texts together. */
const MOST_CHARACTERS = 12 * 1024 * 1024
/** Size with each character written as `\u0000`. */
const MOST_BYTES = 6 * MOST_CHARACTERS + 1024

const texts = v.object({ main: v.string(), tasks: v.string() })
const schema = v.object({ before: texts, after: texts })

/** Opens the stored plan of a session, in its folder of the records. */
export function openPlanBefore(sessionFolder: string): PlanBefore {
  const path = join(sessionFolder, 'plan-before.json')
  const drop = async () => void (await succeeds(rm(path, { force: true })))
  return {
    async keep({ before, after }) {
      const length = [before.main, before.tasks, after.main, after.tasks].reduce((sum, text) => sum + text.length, 0)
      const isKept =
        length <= MOST_CHARACTERS && (await succeeds(writeWholeFile(path, JSON.stringify({ before, after }))))
      // The files of an earlier change do not belong to this one.
      if (!isKept) await drop()
      return isKept
    },
    async read() {
      const read = await readBoundedText(path, MOST_BYTES)
      if (read === 'missing' || 'problem' in read) return null
      try {
        return v.parse(schema, JSON.parse(read.text))
      } catch {
        return null
      }
    },
    drop,
  }
}
