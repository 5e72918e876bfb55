/**
 * What stands for each of our glyphs in a terminal whose locale is not UTF-8: one cell of ASCII for each cell, so that lines and
 * frames stay as wide as they are.
 */
const IN_ASCII: Readonly<Record<string, string>> = {
  '…': '~',
  '·': '-',
  '•': '*',
  '–—−': '-',
  '→›❯▸▶': '>',
  '←': '<',
  '↑': '^',
  '↓': 'v',
  '↕': '|',
  '↗': '/',
  '⏎': '|',
  '⋮': ':',
  '“”': '"',
  '‘’': "'",
  '◆': ':',
  '●': '*',
  '○': 'o',
  '◐': '%',
  '◼': '#',
  '✔✓': '+',
  '✘✖✗': 'x',
  '✎': '&',
  '▲': '^',
  '▼': 'v',
  '█▓': '#',
  '▒': '=',
  '░': '.',
  '─═': '-',
  '│║┃': '|',
  '╭╮╰╯┌┐└┘├┤┬┴┼╔╗╚╝╠╣╦╩╬': '+',
  '⏸': '"',
  '⠋⠴': '|',
  '⠙⠦': '/',
  '⠹⠧⠼': '-',
  '⠸⠇⠏': '\\',
  // It takes two cells.
  '⏳': '..',
}

const BY_GLYPH: ReadonlyMap<string, string> = new Map(
  Object.entries(IN_ASCII).flatMap(([glyphs, ascii]) => [...glyphs].map(glyph => [glyph, ascii] as const)),
)
const GLYPHS = new RegExp(`[${[...BY_GLYPH.keys()].join('')}]`, 'gu')

/** A text for a terminal without its glyphs; what else is not ASCII, such as a name in Chinese, stays as it is. */
export function inAscii(text: string): string {
  return text.replace(GLYPHS, glyph => BY_GLYPH.get(glyph) ?? glyph)
}

/**
 * Whether the locale of an environment can show our glyphs: not with `C` or `POSIX`, nor where it names another charset than
 * UTF-8. One that is not set or names none is taken for UTF-8, and so is every locale on Windows and macOS, whose terminals are.
 */
export function hasGlyphs(env: Readonly<NodeJS.ProcessEnv>, platform: NodeJS.Platform): boolean {
  if (platform === 'win32' || platform === 'darwin') return true
  const locale = env.LC_ALL || env.LC_CTYPE || env.LANG || ''
  const charset = /\.([^@]*)/.exec(locale)?.[1]
  return charset === undefined ? !/^(?:C|POSIX)$/i.test(locale) : /^utf-?8$/i.test(charset)
}

/** Has what is written to a stream written in ASCII, if it is a terminal whose locale cannot show our glyphs. */
export function writeInAscii(
  stream: Pick<NodeJS.WriteStream, 'isTTY' | 'write'>,
  { env, platform }: { env: Readonly<NodeJS.ProcessEnv>; platform: NodeJS.Platform },
): void {
  if (!stream.isTTY || hasGlyphs(env, platform)) return
  const write = stream.write.bind(stream) as (data: unknown, ...rest: unknown[]) => boolean
  stream.write = (data: unknown, ...rest: unknown[]) => write(typeof data === 'string' ? inAscii(data) : data, ...rest)
}
