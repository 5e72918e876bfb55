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
 * The files of the plan as they were before its last change: `plan-before.json` in the session's folder of the records,
 * where no agent can write.
 */
export interface PlanBefore {
  /** Keeps them, in place of those of an earlier change, mode 0600; false if there is no room for them, and then nothing is kept. */
  keep(plan: KeptPlan): Promise<boolean>
  /** Null if nothing is kept, or it cannot be read. */
  read(): Promise<KeptPlan | null>
  /** Removes them. */
  drop(): Promise<void>
}

/** Of the four texts together. */
const MOST_CHARACTERS = 12 * 1024 * 1024
/** Every character written as `\u0000`. */
const MOST_BYTES = 6 * MOST_CHARACTERS + 1024

const texts = v.object({ main: v.string(), tasks: v.string() })
const schema = v.object({ before: texts, after: texts })

/** Opens those of a session, by its folder of the records. */
export function openPlanBefore(sessionFolder: string): PlanBefore {
  const path = join(sessionFolder, 'plan-before.json')
  const drop = async () => void (await succeeds(rm(path, { force: true })))
  return {
    async keep({ before, after }) {
      const length = [before.main, before.tasks, after.main, after.tasks].reduce((sum, text) => sum + text.length, 0)
      const isKept =
        length <= MOST_CHARACTERS && (await succeeds(writeWholeFile(path, JSON.stringify({ before, after }))))
      // Those of an earlier change are not what was before this one.
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
