import {
  type Argument,
  type Around,
  always,
  both,
  type Call,
  either,
  literal,
  NEVER,
  opposite,
  REAL,
  type Verdict,
} from './verdict.ts'

/** What `test` and its words come to. `[[ … ]]` is one, too. */
export function verdictOfTest(args: readonly Argument[], around: Pick<Around, 'made'>): Verdict {
  const or = splitAt(args, '-o')
  if (or.length > 1) return or.map(part => verdictOfTest(part, around)).reduce(either)
  const and = splitAt(args, '-a')
  if (and.length > 1) return and.map(part => verdictOfTest(part, around)).reduce(both)
  const [first, second, third] = args
  if (first === undefined) return NEVER
  if (first.text === '!' && args.length > 1) return opposite(verdictOfTest(args.slice(1), around))
  if (args.length === 2 && second !== undefined && FILE_TEST.test(first.text)) return existence([second], around)
  if (args.length === 3 && third !== undefined && /^-(?:nt|ot|ef)$/.test(second?.text ?? ''))
    return existence([first, third], around)
  if (args.some(({ isReal }) => isReal)) return REAL
  if (args.every(({ isLiteral }) => isLiteral) && isFalse(args.map(({ text }) => text))) return NEVER
  return always('what it compares is nothing that the work makes')
}

const FILE_TEST = /^-[abcdefghkprsuwxLSOGN]$/

/** `-o` and `-a` between two expressions; where they are an operator of a file, nothing is before them. */
function splitAt(args: readonly Argument[], operator: string): (readonly Argument[])[] {
  const at = args.findIndex(
    ({ text, isLiteral }, index) => index > 0 && isLiteral && text === operator && index < args.length - 1,
  )
  return at === -1 ? [args] : [args.slice(0, at), ...splitAt(args.slice(at + 1), operator)]
}

function isFalse(words: readonly string[]): boolean {
  const [first = '', operator, third = ''] = words
  if (words.length === 1) return first === ''
  if (words.length === 2) return first === '-n' ? operator === '' : first === '-z' && operator !== ''
  if (operator === '=' || operator === '==') return first !== third
  if (operator === '!=') return first === third
  if (operator === '-eq') return Number(first) !== Number(third)
  return operator === '-ne' && Number(first) === Number(third)
}

/** A command that succeeds as soon as these files are there. */
export function existence(files: readonly Argument[], { made }: Pick<Around, 'made'>): Verdict {
  const found = files.find(file => !file.isReal && mayBeMade(file, made))
  if (found === undefined) return REAL
  const what = found.isLiteral ? JSON.stringify(found.text) : 'a file'
  return {
    kind: 'exists',
    why: `it only looks whether ${what} is there, which the change makes itself; look at what is in it`,
  }
}

/** Whether a path may be that of a file which the change makes, or of a folder of one. */
function mayBeMade({ text, isLiteral }: Argument, made: readonly string[]): boolean {
  if (!isLiteral || /^[./]*$/.test(text)) return true
  const [before = '', glob] = plainPath(text).split(/(?=[*?[{])/, 2)
  return made.map(plainPath).some(path => {
    if (path === '') return false
    if (glob !== undefined) return path.startsWith(before) || path.includes(`/${before}`)
    return (
      path === before ||
      path.endsWith(`/${before}`) ||
      before.endsWith(`/${path}`) ||
      `/${path}`.includes(`/${before}/`)
    )
  })
}

function plainPath(path: string): string {
  return path
    .replaceAll(/\/\.?(?=\/)/g, '')
    .replace(/^(?:\.\/)+/, '')
    .replace(/\/+$/, '')
}

export function operandsOf(args: readonly Argument[]): readonly Argument[] {
  return args.filter(({ text }) => !/^-./.test(text) && !/^[+-]?\d+[kKmMgG]?$/.test(text))
}

/** Patterns that fit any text that is not empty. */
const ANYTHING = /^(?:\^?\.?[*+]?\$?|\.\*?|\[\s\S\][*+]?|\\S|\\?.\*|\^|\$)$/

export function judgeGrep({ name, args, input, around }: Call): Verdict {
  const at = args.findIndex(({ text }) => text === '-e' || text === '--regexp' || text === '-f')
  const operands = args.filter(
    ({ text }, index) =>
      !/^-./.test(text) && !/^(?:-[ABCm]|--(?:include|exclude)\S*)$/.test(args[index - 1]?.text ?? ''),
  )
  const pattern = at === -1 ? operands[0] : args[at + 1]
  if (pattern === undefined) return NEVER
  const files = operands.filter(operand => operand !== pattern)
  if (files.length === 0 && input === 'constant')
    return always(`\`${name}\` looks at a text that the line holds itself`)
  if (files.length === 0 && input === 'names') return amongNames(pattern, around)
  return pattern.isLiteral && ANYTHING.test(pattern.text) && files.length > 0 ? existence(files, around) : REAL
}

/** `ls | grep -q a.txt`: whether a file of that name is there. */
function amongNames(pattern: Argument, { made }: Around): Verdict {
  const plain = pattern.text.replaceAll(/[\\^$]/g, '')
  const isMade = made.some(path => {
    const name = path.slice(path.lastIndexOf('/') + 1)
    return plain.includes(name) || name.includes(plain) || path.includes(plain)
  })
  if (!isMade && !ANYTHING.test(pattern.text)) return REAL
  return {
    kind: 'exists',
    why: 'it only looks whether a file is there, which the change makes itself; look at what is in it',
  }
}

export function judgeReader(call: Call): Verdict {
  const { name, args, isPiped, around } = call
  const texts = args.map(({ text }) => text)
  if (name === 'sort' && texts.some(text => /^-(?:c|C|-check)/.test(text))) return REAL
  if (/sum$/.test(name) && texts.some(text => /^(?:-c|--check)$/.test(text))) return REAL
  if (/awk$/.test(name) && texts.some(text => /\bexit\b/.test(text))) return REAL
  if (name === 'sed' && texts.some(text => /[qQ]\s*[1-9]/.test(text))) return REAL
  if (isPiped)
    return always(
      `the exit code of the pipe is that of \`${name}\`, which succeeds whatever is before it; leave out that part`,
    )
  if (name === 'find' && texts.includes('+')) return REAL
  if (name === 'find' || name === 'fd') return always(`\`${name}\` succeeds whether it finds anything or not`)
  const operands = operandsOf(args)
  return operands.length === 0 ? always(`\`${name}\` succeeds whatever the work is like`) : existence(operands, around)
}

/** By which option code is given to an interpreter. */
const CODE_OPTIONS: readonly (readonly [program: RegExp, option: RegExp])[] = [
  [/^(?:node|nodejs|bun|tsx|ts-node)$/, /^(?:-e|-p|-pe|--eval|--print)$/],
  [/^(?:python|pypy)/, /^-[a-zA-Z]*c$/],
  [/^(?:perl|ruby)$/, /^-[a-zA-Z]*[eE]$/],
  [/^php$/, /^-r$/],
  [/^deno$/, /^eval$/],
]

/** What code prints, and that it ends with success: what is left says whether it can look at anything, and whether it can fail. */
const HARMLESS =
  /\b(?:console\.\w+|process\.stdout\.write|sys\.stdout\.write|import sys\b|from sys import exit|process\.exitCode\s*=\s*0|(?:(?:process|sys)\.|os\._)?exit(?:\s*\(\s*(?:0|true|True)?\s*\)|\s+0\b|(?=\s*(?:;|$))))/g
const CAN_LOOK =
  /\b(?:require\w*|import|from|load\w*|include\w*|open\w*|read\w*|fetch|eval|exec\w*|system|spawn\w*|subprocess|global\w*|Function|module|fs|os|sys|https?|http2|net|vm|child_process|process|Deno|Bun|WebSocket|this|File|IO|Dir|Path|pathlib|is_\w+|file_\w+|fopen|glob|use|do|argv|env|ENV|STDIN|stdin)\b|[`$]|-[a-z]\s*TEXT/
const CAN_FAIL = /\b(?:exit\w*|throw|raise|assert\w*|die|abort|unless)\b/

/** What looks whether a file is there, and what does more than that. */
const LOOKS =
  /\b(?:existsSync|accessSync|statSync|lstatSync|access|stat|exists|isfile|is_file|isdir|is_dir|file_exists)\b|\b(?:exist|exists|file)\?/
const DOES_MORE =
  /\b(?:read\w*|open|spawn\w*|exec\w*|fetch|get|listen|size|includes|match\w*|load\w*|parse|run\w*|system|subprocess|createServer)\b|\bimport\b|\brequire\s*\(\s*OWN|\.test\(|===|!==/

export function judgeInterpreter({ name, args, around }: Call): Verdict {
  const option = CODE_OPTIONS.find(([program]) => program.test(name))?.[1]
  const at = option === undefined ? -1 : args.findIndex(({ text }) => option.test(text))
  const code = at === -1 ? undefined : args[at + 1]
  if (code === undefined) return REAL
  const texts: string[] = []
  const plain = code.text
    .replaceAll(/\b(?:from (?:os|pathlib|os\.path) import \w+|import (?:os|sys|pathlib)\b(?:\.path)?)/g, '')
    .replaceAll(/"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|`(?:\\.|[^`\\$])*`/g, quoted => {
      const text = quoted.slice(1, -1)
      texts.push(text)
      return /^\.{1,2}\//.test(text) ? 'OWN' : 'TEXT'
    })
  const left = plain.replaceAll(HARMLESS, '').replace(/(?:\/\/|#).*$/, '')
  if (!CAN_LOOK.test(left) && !CAN_FAIL.test(left)) {
    return always(`the code that \`${name}\` is given looks at nothing`)
  }
  if (!LOOKS.test(plain) || DOES_MORE.test(plain)) return REAL
  return existence(texts.map(literal), around)
}
