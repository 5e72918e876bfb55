import { EventEmitter } from 'node:events'
import type { ScreenProcess } from '../../src/doors/screen/cli-context.ts'

/** What a command is given in place of a process where none draws a screen. */
export const NO_PROCESS: ScreenProcess = {
  signals: new EventEmitter(),
  writeNow: () => {},
  rawModeOff: () => {},
  beforeCrash: () => () => {},
  withoutInterrupt: action => action(),
  endNow: () => {},
  letGo: async () => {},
}
