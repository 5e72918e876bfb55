import { Writable } from 'node:stream'
import type { Screen } from '../../ui/screen/screen.tsx'
import type { Role } from '../../ui/theme.ts'

/** A stream whose text is printed above the frame. */
export function printerOn(screen: Screen, role: Role): Writable {
  return new Writable({
    decodeStrings: false,
    write: (text: string | Buffer, _encoding, written) => {
      screen.say(String(text), role)
      written()
    },
  })
}
