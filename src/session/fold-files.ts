import { unreachable } from '../base/errors.ts'
import type { FileEvent } from './file-events.ts'
import { afterBroken } from './fold-build.ts'
import { alsoChanged, savepointAfter } from './fold-proof.ts'
import { told } from './hand-over.ts'
import { memoryNotice, protectedNotice, restoredNotice } from './notices.ts'
import type { SessionState } from './state.ts'

/** The state after one more event of the files. Pure. */
export function foldFiles(state: SessionState, event: FileEvent): SessionState {
  switch (event.type) {
    case 'memory-broken':
      return told({ ...state, build: afterBroken(state.build, event) }, memoryNotice(event.problem))
    case 'repository-restored':
      return told(state, restoredNotice(event.paths))
    case 'savepoint':
      return { ...state, savepoint: savepointAfter(state, event) }
    case 'protected-changed':
      return told({ ...state, protectedChanged: alsoChanged(state, event.files) }, protectedNotice(event.files))
    default:
      return unreachable(event)
  }
}
