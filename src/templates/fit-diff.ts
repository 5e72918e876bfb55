/** A diff that fits. */
interface FittedDiff {
  shown: string
  /** A line of a list for each file that is not shown, or not to its end; empty if there is none. */
  missing: string
}

/**
 * A unified diff (`diff --git …` for each file) in at most `most` characters: as much of every file as there is room for,
 * cut at the end of a line; small ones are whole. Pure.
 * @param first paths that get up to two thirds of the room before all others
 */
export function fitDiff(diff: string, most: number, first: ReadonlySet<string> = new Set()): FittedDiff {
  if (diff.length <= most) return { shown: diff, missing: '' }
  const files = diff.split(/(?<=^|\n)(?=diff --git )/).map(text => ({ text, path: pathOf(text) }))
  const before = share(
    files.filter(({ path }) => first.has(path)),
    Math.floor((most * 2) / 3),
  )
  const used = [...before.values()].reduce((sum, text) => sum + text.length, 0)
  const after = share(
    files.filter(({ path }) => !first.has(path)),
    most - used,
  )
  const shownOf = (file: FileDiff) => before.get(file) ?? after.get(file) ?? ''
  const cut = files.filter(file => shownOf(file).length < file.text.length)
  const lines = cut.slice(0, MOST_NAMED).map(file => `- ${file.path.slice(0, 200)} (${howMuch(file, shownOf(file))})`)
  const more = cut.length - lines.length
  return {
    shown: files.map(shownOf).join(''),
    missing: [...lines, ...(more > 0 ? [`- and ${more} more files`] : [])].join('\n'),
  }
}

interface FileDiff {
  text: string
  path: string
}

const MOST_NAMED = 200
/** Less than this of a file says nothing. */
const LEAST_CHARACTERS = 600

/** What is shown of each file; those that have no room are left out. */
function share(files: readonly FileDiff[], room: number): Map<FileDiff, string> {
  const chosen = files.slice(0, Math.floor(room / LEAST_CHARACTERS))
  const smallFirst = [...chosen].sort((a, b) => a.text.length - b.text.length)
  let left = room
  const shown = new Map<FileDiff, string>()
  for (const [at, file] of smallFirst.entries()) {
    const text = cutAtLine(file.text, Math.floor(left / (smallFirst.length - at)))
    shown.set(file, text)
    left -= text.length
  }
  return shown
}

function cutAtLine(text: string, most: number): string {
  if (text.length <= most) return text
  const end = text.lastIndexOf('\n', most - 1) + 1
  return text.slice(0, end)
}

function howMuch({ text }: FileDiff, shown: string): string {
  return shown === '' ? 'not shown' : `${shown.length} of ${text.length} characters are shown`
}

/** As git writes it in the head of a file's diff. */
function pathOf(text: string): string {
  const lines = text.slice(0, MOST_OF_HEAD).split('\n')
  const end = lines.findIndex(line => line.startsWith('@@ '))
  const head = end === -1 ? lines : lines.slice(0, end)
  const after = (beginning: string) => head.find(line => line.startsWith(beginning))?.slice(beginning.length)
  const named = after('+++ b/') ?? after('--- a/') ?? after('rename to ') ?? head[0]?.replace(/^diff --git .* b\//, '')
  return (named ?? '').replace(/\t$/, '')
}

const MOST_OF_HEAD = 20_000
