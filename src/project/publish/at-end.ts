import { messageOf } from '../../base/errors.ts'
import { asSentence } from '../../base/text.ts'
import type { Published } from '../../core/shapes/published.ts'
import type { Redactor } from '../../secrets/redactor.ts'
import type { Records } from '../../session/records/records.ts'
import { readReport } from '../../tell/report/write.ts'
import type { Settings } from '../settings/schema.ts'
import type { World } from '../world.ts'
import { publish } from './publish.ts'

/** A session that has just ended, in its own run. */
interface EndedHere {
  records: Records
  id: string
  redactor: Redactor
  settings: Pick<Settings, 'publish' | 'publishRemote'>
  /** Receives a sentence for each thing that a person should know. */
  say(text: string): void
}

/** Publishes a session's result without questions. Null: no changes. Never rejects: a failure is in the result. */
export async function publishAtEnd(world: World, ended: EndedHere): Promise<Published | null> {
  const { records, id, redactor, settings, say } = ended
  let kept: Published | null = null
  try {
    const data = await readReport(records, id, null, 'ends')
    if (data === null || data.changes.files === 0) return null
    await publish(world, records, {
      data,
      redactor,
      remote: settings.publishRemote,
      state: settings.publish === 'draft' ? 'draft' : null,
      title: null,
      note: false,
      alone: true,
      choose: async () => null,
      confirm: async () => true,
      say,
      keep: async published => {
        kept = published
      },
    })
    return kept
  } catch (error) {
    const problem = asSentence(messageOf(error))
    return kept ?? { pushedTo: null, branch: null, commit: null, url: null, draft: false, problem }
  }
}
