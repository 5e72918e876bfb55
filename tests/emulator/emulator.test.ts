import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { message, reply } from '../../src/demo/model/reply.ts'
import { type EmulatorOptions, startInEmulator } from '../support/emulator.ts'
import { UNTOUCHED } from '../support/emulator-modes.ts'
import { inWholeUpdates } from '../support/emulator-updates.ts'
import { makePlace, type TestPlace } from '../support/place.ts'
import { openRealScene } from '../support/real-scene.ts'

let place: TestPlace
beforeAll(async () => {
  place = await makePlace('', { git: false })
})
afterAll(() => place[Symbol.asyncDispose]())

/** A small program in the emulator; its output is what `say` is given. */
function program(source: string, options: EmulatorOptions = {}) {
  const prelude = `
    const say = text => process.stdout.write(text)
    const keys = handle => process.stdin.setRawMode(true).on('data', bytes => handle(bytes.toString()))
  `
  return startInEmulator(place, [], { command: [process.execPath, '-e', prelude + source], ...options })
}

describe('the emulator shows what a person sees', () => {
  it('shows rows, keeps what scrolled out, and tells the caret', async () => {
    await using seen = program(
      `for (let i = 1; i <= 30; i++) say('row ' + i + '\\n'); say('end'); setTimeout(() => {}, 1e6)`,
    )
    await seen.until(/row 30\nend/)
    expect(seen.screen()[0]).toBe('row 8')
    expect(seen.screen()).toHaveLength(24)
    expect(seen.all()[0]).toBe('row 1')
    expect(seen.cursor()).toEqual({ x: 3, y: 23, visible: true })
  })

  it('shows colours and attributes, and wide characters in their cells', async () => {
    await using seen = program(`say('\\x1b[1;31mA\\x1b[0m漢\\x1b[38;2;1;2;3mB\\x1b[0m👩‍👩‍👧❤️🇩🇪é|')`)
    await seen.ended
    expect(seen.screen()[0]).toBe('A漢B👩‍👩‍👧❤️🇩🇪é|')
    expect(seen.cellAt(0, 0)).toMatchObject({ chars: 'A', width: 1, fg: 1, bold: true, dim: false })
    expect([seen.cellAt(1, 0).width, seen.cellAt(2, 0).width]).toEqual([2, 0])
    expect(seen.cellAt(3, 0)).toMatchObject({ chars: 'B', fg: '#010203', bg: 'default' })
    expect(seen.cursor().x).toBe(1 + 2 + 1 + 2 + 2 + 2 + 1 + 1)
  })

  it('shows an update that a program has begun when it has ended, however its bytes are cut', () => {
    const shown: string[] = []
    const write = inWholeUpdates(text => shown.push(text))
    const written = 'a\x1b[?2026hone\x1b[?2026lb\x1b[?2026htwo\x1b[?2026l\x1b[1mc'
    for (const character of written) write(character)
    expect(shown.join('')).toBe(written)
    expect(shown).toEqual(expect.arrayContaining(['\x1b[?2026hone\x1b[?2026l', '\x1b[?2026htwo\x1b[?2026l']))
    write('\x1b[?2026hhalf')
    expect(shown.join('')).toBe(written)
    write('\x1b]7717;mark;ended\x07')
    expect(shown.at(-1)).toBe('\x1b[?2026hhalf\x1b]7717;mark;ended\x07')
  })

  it('shows each update by itself, though a busy machine hands over several at once', () => {
    const shown: string[] = []
    inWholeUpdates(text => shown.push(text))('\x1b[?2026hone\x1b[?2026l\x1b[?2026htwo\x1b[?2026lrest')
    expect(shown).toEqual(['\x1b[?2026hone\x1b[?2026l', '\x1b[?2026htwo\x1b[?2026l', 'rest'])
  })

  it('says which screen it was when something does not come', async () => {
    await using seen = program(`say('something else'); setTimeout(() => {}, 1e6)`)
    await seen.until('something')
    await expect(seen.until('never', { withinMs: 50 })).rejects.toThrow(/Not within 50 ms.*never.*\n\| something else/s)
  })

  it('does not wait for a program that has ended', async () => {
    await using seen = program(`say('bye')`)
    await expect(seen.until('never')).rejects.toThrow(/has ended.*\n\| bye/s)
  })
})

describe('what is typed', () => {
  const ECHO = `keys(text => say(JSON.stringify(text) + '\\r\\n')); say('ready\\r\\n')`

  it('comes as a terminal sends it', async () => {
    await using seen = program(ECHO)
    await seen.until('ready')
    const sent = [
      ['enter', '\r'],
      ['ctrl+c', '\x03'],
      ['alt+up', '\x1b[1;3A'],
      ['alt+enter', '\x1b\r'],
      ['shift+enter', '\x1b[13;2u'],
      ['ctrl+_', '\x1f'],
      ['shift+tab', '\x1b[Z'],
      [{ text: 'ü' }, 'ü'],
    ] as const
    for (const [key, bytes] of sent) {
      seen.press(key)
      await seen.until(JSON.stringify(bytes))
    }
  })

  it('comes in the kitty protocol once the program has asked for it, and not after', async () => {
    await using seen = program(
      `${ECHO}; say('\\x1b[?u\\x1b[>1u\\x1b[?u'); keys(text => text === 'x' && say('\\x1b[<uleft\\r\\n'))`,
    )
    await seen.until('ready')
    await seen.until(/\?0u.*\?1u/s)
    seen.press('esc')
    await seen.until(String.raw`"\u001b[27u"`)
    seen.press('ctrl+c')
    await seen.until(String.raw`"\u001b[99;5u"`)
    seen.type('x')
    await seen.until('left')
    seen.press('esc')
    await seen.until(String.raw`"\u001b"`)
  })

  it('is pasted in brackets if the program wants them, and whole if it is large', async () => {
    const lines = Array.from({ length: 10_000 }, (_, i) => `line ${i} of a paste`).join('\n')
    await using seen = program(`
      let got = ''
      keys(text => { got += text; if (got.endsWith('\\x1b[201~')) say('got ' + got.length + ' ' + got.split('\\r').length) })
      say('\\x1b[?2004hready')
    `)
    await seen.until('ready')
    seen.paste(lines)
    await seen.until(`got ${lines.length + 12} 10000`)
  })
})

describe('the terminal', () => {
  it('tells the program its new size', async () => {
    await using seen = program(`
      process.stdout.on('resize', () => say(process.stdout.columns + 'x' + process.stdout.rows))
      setTimeout(() => {}, 1e6); say('ready ')`)
    await seen.until('ready')
    seen.resize(40, 10)
    await seen.until('40x10')
    expect(seen.screen()).toHaveLength(10)
  })

  it('answers queries, or none at all', async () => {
    const ask = `keys(text => say(JSON.stringify(text))); say('\\x1b]11;?\\x1b\\\\\\x1b[6nready')`
    await using light = program(ask, { background: 'light' })
    await light.until('rgb:ffff/ffff/ffff')
    await using mute = program(ask, { mute: true })
    await mute.until('ready')
    mute.type('typed')
    await mute.until('"typed"')
    expect(mute.screen()[0]).toBe('ready"typed"')
  })

  it('is as it was after a program that cleans up', async () => {
    await using seen = program(`
      say('\\x1b[?25l\\x1b[?2004h\\x1b[?1049h\\x1b[?1h\\x1b[?1000h\\x1b[?1004h\\x1b[>1u\\x1b[22;0t\\x1b]2;busy\\x07ready')
      keys(() => { say('\\x1b[<u\\x1b[?1004l\\x1b[?1000l\\x1b[?1l\\x1b[?1049l\\x1b[?2004l\\x1b[?25h\\x1b[23;0t'); process.exit(0) })
    `)
    await seen.until('ready')
    expect(seen.title()).toBe('busy')
    expect(seen.modes()).toMatchObject({
      cursorVisible: false,
      bracketedPaste: true,
      alternateScreen: true,
      applicationCursor: true,
    })
    expect(seen.modes()).toMatchObject({ mouse: 'vt200', focusReports: true, changed: [1, 25, 1000, 1004, 1049, 2004] })
    expect(await seen.stty()).toContain('-echo')
    seen.type('x')
    expect(await seen.ended).toEqual({ exitCode: 0 })
    expect(seen.modes()).toEqual(UNTOUCHED)
    expect(seen.title()).toBe('')
    expect(await seen.stty()).toBe(seen.sttyAtStart())
  })

  it('is seen as it was left by a program that does not', async () => {
    await using seen = program(`say('\\x1b[?25l\\x1b[>1u\\x1b[2J'); keys(() => {}); say('ready')`)
    await seen.until('ready')
    await seen.kill('SIGKILL')
    expect(await seen.ended).toEqual({ exitCode: 137 })
    expect(seen.modes()).toMatchObject({ cursorVisible: false, kitty: 1 })
    expect(await seen.stty()).toContain('-icanon')
    expect(seen.bytes()).toContain('\x1b[?25l\x1b[>1u\x1b[2Jready')
  })

  it('has a shell around it: a program stops and goes on', async () => {
    await using seen = program(`
      process.on('SIGCONT', () => say('back'))
      keys(() => { say('stopping'); process.kill(process.pid, 'SIGTSTP') }); say('ready')`)
    await seen.until('ready')
    const stopped = seen.stopped()
    seen.type('z')
    await stopped
    seen.foreground()
    await seen.until('back')
    await seen.kill('SIGTERM')
    expect(await seen.ended).toEqual({ exitCode: 143 })
  })

  it('can go away', async () => {
    await using seen = program(`
      process.on('SIGHUP', () => { require('node:fs').writeFileSync('heard', ''); process.exit(7) })
      setTimeout(() => {}, 1e6); say('ready')`)
    await seen.until('ready')
    seen.hangUp()
    await seen.ended
    expect(existsSync(join(place.directory, 'heard'))).toBe(true)
  })
})

it('runs the built command line where a scene takes place', async () => {
  await using scene = await openRealScene([[reply(message('All is well here.'))]])
  await using seen = startInEmulator(scene.place, ['--rounds', '1', 'Look around.'])
  await seen.untilInAll('All is well here.')
  expect(await seen.ended).toEqual({ exitCode: 3 })
  expect(seen.modes()).toEqual(UNTOUCHED)
  for (const wipe of ['\x1b[2J', '\x1b[3J']) expect(seen.bytes()).not.toContain(wipe)
})
