/** A compiled glob. */
interface Glob {
  /** True if it is a plain name without special characters. */
  readonly isPlain: boolean
  /** Returns true if it matches a whole path with `/` separators. */
  matches(path: string): boolean
}

interface GlobOptions {
  /** True: `*` also matches `/`, as in a URL; left out: it does not. */
  crossesParts?: boolean
  /** The result if matching is too costly, see `MOST_NODES`. */
  tooHard: boolean
}

/**
 * Compiles a glob: `*` any characters of a path part, `**` any parts, `?` one character, `[a-z]` and `[!a-z]` one of a set.
 * `{a,b}` is one of a list, `{1..9}` one of a range; `@(a|b)`, `?(…)`, `*(…)`, `+(…)` and `!(…)` work as in bash. Hidden names
 * count, `.` and `..` match nothing. Bracketed and unclosed text also matches literally: `[id].tsx`.
 *
 * Matching takes linear time for any glob. It never backtracks: it keeps the possible rest as one expression (derivatives of
 * a regular expression, each made once).
 */
export function compileGlob(glob: string, { crossesParts = false, tooHard }: GlobOptions): Glob {
  const start = () => new Parser(glob, new Expressions(), crossesParts).parse()
  let parsed: ReturnType<typeof start> | null = null
  return {
    get isPlain() {
      parsed ??= start()
      return parsed.isPlain
    },
    matches(path) {
      if (DOTS.test(path)) return path === glob
      parsed ??= start()
      let now: Node = parsed.node
      for (const char of path) {
        const next = now.after(char)
        if (next === null) return tooHard
        if (next === parsed.nothing) return false
        now = next
      }
      return now.isNullable
    },
  }
}

/** Returns true if all brackets, braces and parentheses are closed; an open one is probably a slip. */
export function isBalanced(glob: string): boolean {
  const open: string[] = []
  for (const char of glob) {
    if (open.at(-1) === ']' && char !== ']') continue
    const closing = CLOSINGS.get(char)
    if (closing !== undefined) open.push(closing)
    else if ((char === ']' || char === '}' || char === ')') && open.pop() !== char) return false
  }
  return open.length === 0
}

/** Returns the folder above all matches of a glob; empty: anywhere. For a plain name: the name itself. */
export function baseOf(glob: string): string {
  const parts = glob.split('/')
  const first = parts.findIndex(part => /[*?[\]{}()]/.test(part))
  return (first === -1 ? parts : parts.slice(0, first)).join('/')
}

const DOTS = /(?:^|\/)\.{1,2}(?:\/|$)/
const CLOSINGS: ReadonlyMap<string, string> = new Map([
  ['[', ']'],
  ['{', '}'],
  ['(', ')'],
])

/** Limit of expressions for a glob; a path that needs more is not matched fully. Usual globs need some dozens. */
const MOST_NODES = 5_000
/** Limit of values of a range `{1..9}`. */
const MOST_NUMBERS = 100

/** An expression: the possible rest after some place in a glob. */
interface Node {
  readonly id: number
  /** True if the rest may be empty. */
  readonly isNullable: boolean
  /** Returns the rest after this character; null: too costly. */
  after(char: string): Node | null
}

/** Creates each expression once, so that equal ones are identical. */
class Expressions {
  readonly #known = new Map<string, Node>()
  /** The expression without matches. */
  readonly nothing: Node = this.#make('nothing', false, () => this.nothing)
  /** The expression of the empty text. */
  readonly empty: Node = this.#make('empty', true, () => this.nothing)

  /** One character. @param name key of equal characters */
  char(name: string, fits: (char: string) => boolean): Node {
    return this.#make(`char ${name}`, false, char => (fits(char) ? this.empty : this.nothing))
  }

  chain(first: Node, second: Node): Node {
    if (first === this.nothing || second === this.nothing) return this.nothing
    if (first === this.empty) return second
    if (second === this.empty) return first
    return this.#make(`${first.id} chain ${second.id}`, first.isNullable && second.isNullable, char => {
      const after = first.after(char)
      const rest = after && this.chain(after, second)
      if (rest === null || !first.isNullable) return rest
      const skipped = second.after(char)
      return skipped && this.any([rest, skipped])
    })
  }

  any(nodes: readonly Node[]): Node {
    const all = new Map<number, Node>()
    for (const node of nodes) for (const each of this.#parts.get(node) ?? [node]) all.set(each.id, each)
    all.delete(this.nothing.id)
    const parts = [...all.values()].sort((a, b) => a.id - b.id)
    const [only = this.nothing] = parts
    if (parts.length <= 1) return only
    const made = this.#make(
      `any ${parts.map(({ id }) => id).join()}`,
      parts.some(each => each.isNullable),
      char => this.#each(parts, char, after => this.any(after)),
    )
    this.#parts.set(made, parts)
    return made
  }

  repeat(node: Node): Node {
    if (node === this.nothing || node === this.empty) return this.empty
    const made: Node = this.#make(`repeat ${node.id}`, true, char => {
      const after = node.after(char)
      return after && this.chain(after, made)
    })
    return made
  }

  /** Matches the first expression, but not the second. */
  but(node: Node, not: Node): Node {
    if (node === this.nothing) return this.nothing
    return this.#make(`${node.id} but ${not.id}`, node.isNullable && !not.isNullable, char =>
      this.#each([node, not], char, ([after = this.nothing, notAfter = this.nothing]) => this.but(after, notAfter)),
    )
  }

  readonly #parts = new Map<Node, readonly Node[]>()

  #each(nodes: readonly Node[], char: string, make: (after: readonly Node[]) => Node): Node | null {
    const after: Node[] = []
    for (const node of nodes) {
      const next = node.after(char)
      if (next === null) return null
      after.push(next)
    }
    return make(after)
  }

  #make(name: string, isNullable: boolean, derive: (char: string) => Node | null): Node {
    const known = this.#known.get(name)
    if (known !== undefined) return known
    const memo = new Map<string, Node>()
    const node: Node = {
      id: this.#known.size,
      isNullable,
      after: char => {
        const seen = memo.get(char)
        if (seen !== undefined) return seen
        if (this.#known.size > MOST_NODES) return null
        const next = derive(char)
        if (next !== null) memo.set(char, next)
        return next
      },
    }
    this.#known.set(name, node)
    return node
  }
}

/** Parses a glob from start to end. */
class Parser {
  readonly #text: readonly string[]
  readonly #make: Expressions
  readonly #crossesParts: boolean
  #at = 0
  /** Current bracket depth. */
  #depth = 0
  #isPlain = true

  constructor(glob: string, make: Expressions, crossesParts: boolean) {
    this.#text = [...glob]
    this.#make = make
    this.#crossesParts = crossesParts
  }

  parse(): { node: Node; nothing: Node; isPlain: boolean } {
    const node = this.#sequence(this.#text.length)
    return { node, nothing: this.#make.nothing, isPlain: this.#isPlain }
  }

  /** Parses up to `end`. */
  #sequence(end: number): Node {
    const nodes: Node[] = []
    while (this.#at < end) nodes.push(this.#next(end))
    // From the end, so that equal rests are the same expression.
    return nodes.reduceRight((rest, node) => this.#make.chain(node, rest), this.#make.empty)
  }

  #next(end: number): Node {
    const [char = '', following] = [this.#text[this.#at], this.#text[this.#at + 1]]
    if (following === '(' && '@?*+!'.includes(char)) {
      const group = this.#group(this.#at + 1, end)
      if (group !== null) return this.#counted(char, group)
    }
    switch (char) {
      case '*':
        return this.#stars(end)
      case '?':
        return this.#special(1, this.#inPart)
      case '[':
        return this.#class(end)
      case '{':
        return this.#braces(end)
      case '(':
        return this.#group(this.#at, end) ?? this.#literal()
      case '/':
        return this.#slash(end)
      default:
        return this.#literal()
    }
  }

  #literal(): Node {
    const char = this.#text[this.#at++] ?? ''
    return this.#exactly(char)
  }

  #exactly(char: string): Node {
    return this.#make.char(`is ${char}`, other => other === char)
  }

  #special(length: number, node: Node): Node {
    this.#isPlain = false
    this.#at += length
    return node
  }

  get #inPart(): Node {
    return this.#make.char('in part', char => char !== '/')
  }

  get #anything(): Node {
    return this.#make.repeat(this.#make.char('any', () => true))
  }

  /** Any characters of a part; at least one if it is the whole part. */
  #stars(end: number): Node {
    const from = this.#at
    let to = from
    while (to < end && this.#text[to] === '*') to++
    if (this.#crossesParts) return this.#special(to - from, this.#anything)
    const isWhole = this.#beginsPart(from) && this.#endsPart(to)
    const characters = this.#make.repeat(this.#inPart)
    if (!isWhole) return this.#special(to - from, characters)
    const part = this.#make.chain(this.#inPart, characters)
    if (to - from < 2) return this.#special(1, part)
    if (this.#text[to] === '/' && to < end)
      return this.#special(to - from + 1, this.#make.repeat(this.#make.chain(part, this.#exactly('/'))))
    return this.#special(to - from, this.#anything)
  }

  /** `a/**` also matches `a`, but not after a star: that is about contents of folders. */
  #slash(end: number): Node {
    let to = this.#at
    while (to < end && this.#text[to] === '/' && this.#text[to + 1] === '*' && this.#text[to + 2] === '*') {
      for (to++; to < end && this.#text[to] === '*'; ) to++
    }
    const isRest = to > this.#at && to === end && this.#endsPart(to)
    if (!isRest || this.#text[this.#at - 1] === '*' || this.#crossesParts) return this.#literal()
    const below = this.#make.chain(this.#exactly('/'), this.#anything)
    return this.#special(to - this.#at, this.#make.any([this.#make.empty, below]))
  }

  #beginsPart(at: number): boolean {
    const before = this.#text[at - 1]
    return before === undefined || before === '/' || (this.#depth > 0 && '{(,|'.includes(before))
  }

  #endsPart(at: number): boolean {
    const char = this.#text[at]
    return char === undefined || char === '/' || (this.#depth > 0 && '}),|'.includes(char))
  }

  /** One character of the set, or the literal brackets. */
  #class(end: number): Node {
    const from = this.#at
    const isNegated = '!^'.includes(this.#text[from + 1] ?? ' ')
    const first = from + (isNegated ? 2 : 1)
    const close = this.#text.indexOf(']', first + 1)
    if (close === -1 || close >= end) return this.#literal()
    const inside = this.#text.slice(first, close)
    const ranges: [string, string][] = []
    for (let at = 0; at < inside.length; at++) {
      const [low = '', dash, high] = inside.slice(at, at + 3)
      const isRange = dash === '-' && high !== undefined
      ranges.push([low, isRange ? high : low])
      if (isRange) at += 2
    }
    const isIn = (char: string) => ranges.some(([low, high]) => low <= char && char <= high)
    const written = this.#text.slice(from, close + 1)
    const one = this.#make.char(written.join(''), char => char !== '/' && isIn(char) !== isNegated)
    return this.#special(written.length, this.#make.any([one, this.#written(written)]))
  }

  #written(chars: readonly string[]): Node {
    return chars.reduceRight((rest, char) => this.#make.chain(this.#exactly(char), rest), this.#make.empty)
  }

  #braces(end: number): Node {
    const close = this.#closing(this.#at, end)
    if (close === null) return this.#literal()
    const numbers = this.#between(this.#text.slice(this.#at + 1, close).join(''))
    if (numbers !== null) return this.#special(close - this.#at + 1, this.#make.any(numbers))
    const cuts = this.#cuts(this.#at, close, ',')
    return cuts.length === 0 ? this.#literal() : this.#alternatives([...cuts, close])
  }

  /** Returns each value of `1..9` or `a..c`; null: not a range. */
  #between(text: string): Node[] | null {
    const [, first, last] = /^(-?\d{1,9}|[A-Za-z])\.\.(-?\d{1,9}|[A-Za-z])$/.exec(text) ?? []
    if (first === undefined || last === undefined) return null
    const isNumber = /\d/.test(first)
    if (isNumber !== /\d/.test(last)) return null
    const [a, b] = isNumber ? [Number(first), Number(last)] : [first.charCodeAt(0), last.charCodeAt(0)]
    const [low, high] = [Math.min(a, b), Math.max(a, b)]
    if (high - low >= MOST_NUMBERS) return null
    return Array.from({ length: high - low + 1 }, (_, n) => {
      const text = isNumber ? String(low + n) : String.fromCharCode(low + n)
      return this.#written([...text])
    })
  }

  /** Parses `(a|b)`; null: not closed. */
  #group(open: number, end: number): Node | null {
    const close = this.#closing(open, end)
    if (close === null) return null
    this.#at = open
    return this.#alternatives([...this.#cuts(open, close, '|'), close])
  }

  /** Parses the alternatives between these places; the first starts after `#at`. */
  #alternatives(ends: readonly number[]): Node {
    this.#depth++
    const nodes = ends.map(end => {
      this.#at++
      const node = this.#sequence(end)
      this.#at = end
      return node
    })
    this.#depth--
    return this.#special(1, this.#make.any(nodes))
  }

  #counted(how: string, group: Node): Node {
    if (how === '?') return this.#make.any([this.#make.empty, group])
    if (how === '*') return this.#make.repeat(group)
    if (how === '+') return this.#make.chain(group, this.#make.repeat(group))
    return how === '!' ? this.#make.but(this.#make.repeat(this.#inPart), group) : group
  }

  /** Returns where the bracket at this place is closed; null: not before `end`. */
  #closing(open: number, end: number): number | null {
    const stack: string[] = []
    for (let at = open; at < end; at++) {
      const char = this.#text[at] ?? ''
      const closing = char === '[' ? undefined : CLOSINGS.get(char)
      if (closing !== undefined) stack.push(closing)
      else if (char === stack.at(-1)) stack.pop()
      if (stack.length === 0) return at
    }
    return null
  }

  /** Returns the separators between two places, outside of nested brackets. */
  #cuts(open: number, close: number, separator: string): number[] {
    const found: number[] = []
    for (let at = open + 1; at < close; at++) {
      const char = this.#text[at] ?? ''
      if (char === separator) found.push(at)
      else if (char === '{' || char === '(') at = this.#closing(at, close) ?? at
    }
    return found
  }
}
