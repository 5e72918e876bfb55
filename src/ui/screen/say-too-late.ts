import { oneLine } from '../safe-text.ts'
import type { ScreenModel } from './screen-model.ts'

const TEXT_CHARS = 500

/** Says that what is being written comes too late, for the session has ended. Resolves once the person has seen it. */
export async function sayTooLate(model: ScreenModel): Promise<void> {
  model.dismiss('withdrawn')
  const written = oneLine(model.composer.text, TEXT_CHARS)
  await model.choose({
    title: 'The session has ended meanwhile.',
    body: [written === '' ? 'There is nothing to be told any more.' : `This was not sent: ${written}`],
    options: [{ id: 'close', label: 'Close' }],
  })
}
