import { renderUnicodeCompact } from 'uqr'

/** A QR code of a text, as lines of half blocks: dark on light in whatever colours the terminal has is what cameras read. */
export function linesOfQr(text: string): string[] {
  return renderUnicodeCompact(text, { border: 2, ecc: 'L' }).split('\n')
}
