import fc from 'fast-check'

/** Texts that would steer a terminal, reorder a line, or are not well-formed. */
export const hostileText = fc.string({
  unit: fc.oneof(
    fc.constantFrom('\x1b[2J', '\x9b', '\r', '\n', '\t', '\0', '\x7f', '\u202e', '\u2066', '\u2028', '\ud800'),
    fc.string({ unit: 'binary', maxLength: 2 }),
  ),
})
