import type { Clock } from '../../base/clock.ts'
import type { Ask, ScreenHost } from './host.ts'
import type { ScreenModel } from './screen-model.ts'

/** Who asks, and whom. */
export interface Asking {
  model: ScreenModel
  host: ScreenHost
  clock: Clock
}

/** Tells the session something; whether it was taken. What came of it is said. */
export async function tell({ model, host }: Asking, ask: Ask): Promise<boolean> {
  const { delivered, kept, message } = await host.ask(ask)
  const isTaken = delivered || kept === true
  model.notice(message, isTaken ? 'good' : 'warning')
  return isTaken
}

/** The same of what a person wrote: it stands in the composer again if it was not taken, whatever the reason. */
export async function tellWritten(asking: Asking, ask: Extract<Ask, { text: string }>): Promise<boolean> {
  const { model, host } = asking
  host.remember(ask.text)
  let isTaken = false
  try {
    isTaken = await tell(asking, ask)
  } finally {
    if (!isTaken) model.addText(ask.text)
  }
  return isTaken
}
