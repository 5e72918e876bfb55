import { expect, test } from 'vitest'
import { Composer } from '../../../../src/doors/screen/composer/composer.ts'
import { Keymap } from '../../../../src/project/settings/keys.ts'
import { cpuMs } from '../../../support/cpu-time.ts'
import { press, write } from './press.ts'

const COMMANDS = [
  { name: 'start', description: 'Start a session', note: null },
  { name: 'resume', description: 'Resume a session', note: null },
  { name: 'report', description: 'What was done', note: null },
  { name: 'queue', description: 'What comes next', note: '2 waiting' },
]

function open(files: (query: string) => Promise<readonly string[]> = async () => []): Composer {
  const composer = new Composer({ keymap: new Keymap(), searchFiles: files })
  composer.setCommands(COMMANDS)
  return composer
}

function offered(composer: Composer): string[] {
  const { popup } = composer.snapshot()
  if (popup === null) return []
  return popup.options.map(option => (typeof option === 'string' ? option : option.name))
}

test('Enter sends the text, Tab sends it to the running turn, and both empty the field', () => {
  const composer = open()
  write(composer, 'mend the build')
  expect(press(composer, 'return')).toEqual({ kind: 'submit', text: 'mend the build' })
  expect(composer.text).toBe('')
  expect(press(composer, 'ctrl+_')).toBeNull()
  expect(composer.text).toBe('')
  write(composer, 'faster')
  expect(press(composer, 'tab')).toEqual({ kind: 'steer', text: 'faster' })
})

test('Enter on nothing but white space does nothing', () => {
  const composer = open()
  write(composer, '  ')
  expect(press(composer, 'ctrl+j', 'return')).toBeNull()
  expect(composer.text).toBe('  \n')
})

test('a pasted log is sent in full', () => {
  const composer = open()
  write(composer, 'why? ')
  composer.paste('line\r\n'.repeat(312))
  expect(press(composer, 'return')).toEqual({ kind: 'submit', text: `why? ${'line\n'.repeat(312)}` })
})

test('a backslash before Enter, Shift+Enter, Alt+Enter and Ctrl+J begin a new line', () => {
  const composer = open()
  write(composer, 'a\\')
  expect(press(composer, 'return')).toBeNull()
  for (const chord of ['shift+return', 'alt+return', 'ctrl+j']) {
    write(composer, 'b')
    press(composer, chord)
  }
  expect(composer.text).toBe('a\nb\nb\nb\n')
})

test('keys that are the screen’s are handed on', () => {
  const composer = open()
  expect(press(composer, '?')).toEqual({ kind: 'action', action: 'help' })
  expect(press(composer, 'ctrl+d')).toEqual({ kind: 'action', action: 'leave' })
  expect(press(composer, 'escape')).toEqual({ kind: 'action', action: 'interrupt' })
  expect(press(composer, 'alt+up')).toEqual({ kind: 'action', action: 'take_back' })
  expect(press(composer, 'ctrl+g')).toEqual({ kind: 'action', action: 'editor' })
  const others = {
    'ctrl+t': 'tasks',
    'ctrl+o': 'output',
    'ctrl+l': 'redraw',
    'ctrl+z': 'suspend',
    'ctrl+e': 'log',
    tab: 'answer',
  }
  for (const [chord, action] of Object.entries(others)) {
    expect(press(composer, chord), chord).toEqual({ kind: 'action', action })
  }
  for (const chord of ['pageup', 'return', 'backspace']) expect(press(composer, chord), chord).toBeNull()
  expect(composer.text).toBe('')
})

test('what was put aside comes back by Up, before what was sent', () => {
  const composer = open()
  composer.setHistory(['older'])
  write(composer, 'a draft')
  composer.putAside()
  expect(composer.text).toBe('')
  press(composer, 'up')
  expect(composer.text).toBe('a draft')
  press(composer, 'up')
  expect(composer.text).toBe('older')
  write(composer, '!')
  composer.putAside()
  press(composer, 'up', 'up')
  expect(composer.text).toBe('a draft')
})

test('with something written `?`, Ctrl+D and Ctrl+E edit', () => {
  const composer = open()
  write(composer, 'ab?')
  press(composer, 'ctrl+a', 'ctrl+d')
  expect(composer.text).toBe('b?')
  press(composer, 'ctrl+e', 'ctrl+e')
  write(composer, '!')
  expect(composer.text).toBe('b?!')
})

test('text that arrives in one piece is never taken for the name of a key', () => {
  const composer = open()
  for (const input of ['up', 'left', 'return', 'constructor', 'ctrl+k']) {
    composer.key({ input, ctrl: false, meta: false, shift: false, name: null })
  }
  expect(composer.text).toBe('upleftreturnconstructorctrl+k')
})

test('who listens gets a new snapshot for each change, and the same one as long as there is none', () => {
  const composer = open()
  const before = composer.snapshot()
  let calls = 0
  const leave = composer.subscribe(() => {
    calls += 1
  })
  write(composer, 'a')
  expect(composer.snapshot()).not.toBe(before)
  expect(composer.snapshot()).toBe(composer.snapshot())
  leave()
  write(composer, 'b')
  expect(calls).toBe(1)
})

test('a known command is one, an unknown one names the nearest, a path is text', () => {
  const composer = open()
  write(composer, '/start mend the  build')
  expect(press(composer, 'return')).toEqual({ kind: 'command', name: 'start', rest: 'mend the  build' })
  write(composer, '/qeue now')
  expect(press(composer, 'return')).toEqual({ kind: 'unknown-command', name: 'qeue', nearest: 'queue' })
  expect(composer.text).toBe('/qeue now')
  composer.setText('/frobnicate')
  expect(press(composer, 'return')).toEqual({ kind: 'unknown-command', name: 'frobnicate', nearest: null })
  for (const text of ['/etc/hosts is wrong', '/ is full', '/start\nwith two lines']) {
    composer.setText(text)
    expect(press(composer, 'return')).toEqual({ kind: 'submit', text })
  }
})

test('commands are offered by their beginning, then by their letters', () => {
  const composer = open()
  write(composer, '/')
  expect(offered(composer)).toEqual(['start', 'resume', 'report', 'queue'])
  write(composer, 're')
  expect(offered(composer)).toEqual(['resume', 'report'])
  composer.setText('')
  write(composer, '/r')
  expect(offered(composer)).toEqual(['resume', 'report', 'start'])
  write(composer, 'x')
  expect(offered(composer)).toEqual([])
})

test('Tab completes the chosen command, Enter runs it', () => {
  const composer = open()
  write(composer, '/re')
  expect(press(composer, 'down', 'return')).toEqual({ kind: 'command', name: 'report', rest: '' })
  expect(composer.text).toBe('')
  write(composer, '/queue')
  expect(press(composer, 'return')).toEqual({ kind: 'command', name: 'queue', rest: '' })
  write(composer, '/re')
  press(composer, 'up', 'ctrl+p', 'ctrl+n', 'tab')
  expect(composer.text).toBe('/report ')
  expect(offered(composer)).toEqual([])
})

test('Escape closes the popup until the word changes', () => {
  const composer = open()
  write(composer, '/re')
  expect(press(composer, 'escape')).toBeNull()
  expect(offered(composer)).toEqual([])
  expect(press(composer, 'left', 'escape')).toEqual({ kind: 'action', action: 'interrupt' })
  press(composer, 'end')
  write(composer, 's')
  expect(offered(composer)).toEqual(['resume'])
})

test('files are offered for a word with @, and the chosen path takes its place', async () => {
  const composer = open(async query => [`src/${query}.ts`, 'my notes.md'])
  write(composer, 'look at @ma')
  expect(offered(composer)).toEqual([])
  await Promise.resolve()
  expect(offered(composer)).toEqual(['src/ma.ts', 'my notes.md'])
  press(composer, 'tab')
  expect(composer.text).toBe('look at @src/ma.ts ')
  write(composer, 'and @x')
  await Promise.resolve()
  press(composer, 'down', 'return')
  expect(composer.text).toBe('look at @src/ma.ts and @"my notes.md" ')
})

test('an address with @ in it is no file', async () => {
  const asked: string[] = []
  const composer = open(async query => {
    asked.push(query)
    return ['a']
  })
  write(composer, 'mail me@example.org')
  await Promise.resolve()
  expect(asked).toEqual([])
  expect(offered(composer)).toEqual([])
})

test('an answer for an older word is not shown, and a search that fails finds nothing', async () => {
  const answers = new Map<string, (paths: readonly string[]) => void>()
  const composer = open(query =>
    query === 'abx' ? Promise.reject(new Error('gone')) : new Promise(resolve => answers.set(query, resolve)),
  )
  write(composer, '@ab')
  answers.get('ab')?.(['ab.ts'])
  await Promise.resolve()
  expect(offered(composer)).toEqual(['ab.ts'])
  answers.get('a')?.(['late.ts'])
  await Promise.resolve()
  expect(offered(composer)).toEqual(['ab.ts'])
  write(composer, 'x')
  expect(offered(composer)).toEqual([])
  await Promise.resolve()
  await Promise.resolve()
  expect(offered(composer)).toEqual([])
})

test('while files are searched, those found before stay as far as they fit', async () => {
  const composer = open(query => (query.length > 1 ? new Promise(() => {}) : Promise.resolve(['src/a.ts', 'src/b.ts'])))
  write(composer, '@s')
  await Promise.resolve()
  write(composer, 'b')
  expect(offered(composer)).toEqual(['src/b.ts'])
})

test('up and down show what was sent before, once each, and come back to what was being written', () => {
  const composer = open()
  composer.setHistory(['one', 'two\nlines', 'one', 'three', 'three'])
  write(composer, 'draft')
  const shown = (chord: string) => {
    press(composer, chord)
    return composer.text
  }
  expect([shown('up'), shown('up'), shown('ctrl+p'), shown('up')]).toEqual(['three', 'one', 'two\nlines', 'two\nlines'])
  expect([shown('down'), shown('ctrl+n'), shown('down'), shown('down')]).toEqual(['one', 'three', 'draft', 'draft'])
})

test('a text that was written again is not shown once more', () => {
  const composer = open()
  composer.setHistory(['one', 'two'])
  write(composer, 'two')
  press(composer, 'up')
  expect(composer.text).toBe('one')
})

test('in a text of several lines up is the history only from the first row on', () => {
  const composer = open()
  composer.setHistory(['old'])
  write(composer, 'a')
  press(composer, 'ctrl+j')
  write(composer, 'b')
  press(composer, 'up')
  expect(composer.text).toBe('a\nb')
  press(composer, 'up')
  expect(composer.text).toBe('old')
})

test('a command of the history offers nothing that would catch the arrows', () => {
  const composer = open()
  composer.setHistory(['first', '/start'])
  press(composer, 'up', 'up')
  expect(composer.text).toBe('first')
})

test('Ctrl+R finds older and older texts, and Enter takes one into the field', () => {
  const composer = open()
  composer.setHistory(['mend the build', 'write tests', 'mend the tests', 'mend the tests'])
  press(composer, 'ctrl+r')
  write(composer, 'mend')
  press(composer, 'ctrl+r')
  expect(composer.snapshot().search).toMatchObject({ query: 'mend', index: 0 })
  expect(press(composer, 'return')).toBeNull()
  expect(composer.text).toBe('mend the build')
  expect(composer.snapshot().search).toBeNull()
})

test('leaving a search by Escape, Ctrl+G or Ctrl+C brings back what was there', () => {
  for (const chord of ['escape', 'ctrl+g', 'ctrl+c']) {
    const composer = open()
    composer.setHistory(['older'])
    write(composer, 'draft')
    press(composer, 'ctrl+r', 'o', 'x', 'backspace')
    expect(composer.snapshot().search).toMatchObject({ query: 'o', index: 0 })
    expect(press(composer, 'ctrl+t')).toEqual({ kind: 'action', action: 'tasks' })
    expect(press(composer, chord)).toBeNull()
    expect(composer.text).toBe('draft')
    expect(composer.snapshot().search).toBeNull()
  }
})

test('a draft is restored with its chips', () => {
  const composer = open()
  write(composer, 'see ')
  composer.paste('line\n'.repeat(40))
  const other = open()
  other.restore(JSON.parse(JSON.stringify(composer.draft())))
  write(other, '!')
  expect(other.text).toBe(`see ${'line\n'.repeat(40)}!`)
  other.clear()
  expect(other.draft()).toEqual({ parts: [], caret: 0 })
})

test('a key in a text of 10,000 lines takes less than 5 ms', () => {
  const composer = open()
  composer.setText(
    Array.from({ length: 10_000 }, (_, line) => `${line} ${'some words of a line '.repeat(4)}`).join('\n'),
  )
  const times = Array.from({ length: 40 }, () => {
    const start = cpuMs()
    press(composer, 'x', 'up', 'ctrl+w', 'ctrl+j')
    return (cpuMs() - start) / 4
  })
  expect(times.toSorted((a, b) => a - b)[20]).toBeLessThan(5)
})
