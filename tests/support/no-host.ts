import type { ScreenHost } from '../../src/doors/screen/screen/dialogs.ts'

/** The host of a screen in which nothing that is typed has an effect. */
export const NO_HOST: ScreenHost = {
  ask: async () => ({ code: 'no-session', message: '' }),
  enqueue: async () => '',
  takeBack: async () => false,
  attend: () => false,
  begin: () => {},
  command: async () => {},
  edit: async () => null,
  editFile: async () => false,
  showPlanChange: async () => {},
  happened: () => {},
  answer: async () => '',
  openLogs: async () => {},
  openPalette: async () => {},
  openDiff: async () => {},
  suspend: async () => {},
  leave: () => {},
  leaveNow: () => {},
  keepEnter: async () => {},
  remember: () => {},
  warningsOfSecret: () => [],
  storeSecret: async () => null,
}
