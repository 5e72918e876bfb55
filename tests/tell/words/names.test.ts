import { spawnSync } from 'node:child_process'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { shownCommand, wordsForCause, wordsForClass, wordsForRoundEnd } from '../../../src/tell/words/names.ts'
import { cpuMs } from '../../support/cpu-time.ts'

/** Joins words as codex does, by the rules of version 1.3 of Rust's shlex: in chunks, each with the least quotes that hold it. */
function join(words: readonly string[]): string {
  return words.map(quoted).join(' ')
}

function quoted(word: string): string {
  if (word === '') return "''"
  let out = ''
  for (let rest = [...word]; rest.length > 0; ) {
    const { length, way } = chunkOf(rest)
    out += QUOTES[way](rest.slice(0, length).join(''))
    rest = rest.slice(length)
  }
  return out
}

type Way = keyof typeof QUOTES
const QUOTES = {
  bare: (text: string) => text,
  single: (text: string) => `'${text}'`,
  double: (text: string) => `"${text.replace(/[$`"\\]/g, '\\$&')}"`,
}
const HOLDS: Readonly<Record<Way, RegExp>> = {
  bare: /[\w+\-./:@\]]/,
  single: /[^'^\\]/,
  double: /[^`$!^]/,
}

function chunkOf(text: readonly string[]): { length: number; way: Way } {
  // A caret stands in single quotes only, and only first.
  let ways: Way[] = text[0] === '^' ? ['single'] : ['bare', 'single', 'double']
  let length = text[0] === '^' ? 1 : 0
  for (const character of text.slice(length)) {
    const left = ways.filter(way => HOLDS[way].test(character))
    if (left.length === 0) break
    ways = left
    length++
  }
  return { length, way: ways[0] ?? 'double' }
}

const commandText = fc.string({
  unit: fc.oneof(
    fc.constantFrom(...'\'"$`\\!^ \n\t;&|<>()*?[]{}#~=%-'),
    fc.constantFrom('sed -i', 'a', '日', 'é', '👩‍👩‍👧', '$(ls)', "'\"'\"'", '\\\n'),
  ),
  maxLength: 60,
})

test('whatever the command is, what codex has put around it is taken away, and nothing else', () => {
  const shells = fc.constantFrom('/bin/bash', 'bash', '/usr/bin/zsh', 'sh', '/opt/my shells/$1/dash')
  fc.assert(
    fc.property(shells, fc.constantFrom('-lc', '-c'), commandText, (shell, option, command) => {
      expect(shownCommand(join([shell, option, command]))).toBe(command)
    }),
  )
})

test('the rules of codex are those that a shell undoes', () => {
  const commands = fc.sample(
    commandText.filter(text => text.isWellFormed()),
    200,
  )
  const script = `printf '%s\\0' ${join(commands)}`
  expect(spawnSync('sh', ['-c', script], { encoding: 'utf8' }).stdout.split('\0').slice(0, -1)).toEqual(commands)
})

test.each([
  [
    `/bin/bash -lc "sed -i 's/"'^finite: false/finite: true/'"' "'$(ls -d x)/MAIN.md'`,
    "sed -i 's/^finite: false/finite: true/' $(ls -d x)/MAIN.md",
  ],
  [`/bin/bash -lc 'cat > $(ls)/a <<'"'END'\nx\nEND"`, "cat > $(ls)/a <<'END'\nx\nEND"],
  ['/usr/bin/zsh -lc "echo \\"\\$HOME\\" \\x"', 'echo "$HOME" \\x'],
  ["sh -c 'it'\\''s'", "it's"],
  ["bash -lc ''", ''],
])('%j was written as %j', (command, written) => {
  expect(shownCommand(command)).toBe(written)
})

test.each([
  "bash -lc 'a' 'b'",
  'bash -lc',
  'bash -lc "$HOME"',
  'bash -lc `ls`',
  'bash -lc a;b',
  'bash -lc *.ts',
  "bash -lc 'a",
  'bash -lc "a\\"',
  'bash -lc a\\',
  "bash -x 'a'",
  "bash 'a'",
  "/bin/fish -c 'a'",
  "node -c 'a'",
  "'/bin/bash -lc' a",
  '',
])('%j is shown as it is', command => {
  expect(shownCommand(command)).toBe(command)
})

test('a long command is read in no time, however it is quoted', () => {
  const start = cpuMs()
  for (const text of ["'", '"', '\\', '$', '^', "'^", 'a', ' ', `"'"`, "a'b\\$c"]) {
    const command = text.repeat(64 * 1024).slice(0, 64 * 1024)
    expect(shownCommand(join(['/bin/bash', '-lc', command.slice(0, 1024)]))).toBe(command.slice(0, 1024))
    for (const wild of [command, `bash -lc ${command}`, `bash -lc "${command}`, `bash -lc '${command}`])
      shownCommand(wild)
  }
  expect(shownCommand(`bash -lc '${'x'.repeat(64 * 1024)}'`)).toHaveLength(64 * 1024)
  const huge = `bash -lc '${'x'.repeat(5_000_000)}'`
  expect(shownCommand(huge)).toBe(huge)
  expect(cpuMs() - start).toBeLessThan(2000)
})

test('access that a server refuses (403) is called that, and not the network', () => {
  const message = 'unexpected status 403 Forbidden: no.'
  const refused = { class: 'network', message, status: 403 } as const
  const said = [wordsForClass(refused), wordsForRoundEnd(refused), wordsForCause(refused)]
  const words = 'the server refused access (403)'
  expect(said).toEqual([words, words, `${words}: unexpected status 403 Forbidden: no`])
  expect(wordsForCause({ class: 'network', message })).toMatch(/^network: /)
})
