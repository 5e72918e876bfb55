import fc from 'fast-check'
import { expect, test } from 'vitest'
import { TypedText } from '../../../../src/doors/screen/blocks/message-stream.ts'

const FRAME_MS = 33
const graphemes = new Intl.Segmenter()
const boundaries = (text: string) => [...graphemes.segment(text)].map(({ index }) => index).concat(text.length)

function typed(text: string): TypedText {
  const typed = new TypedText({ motion: 'full' })
  typed.arrive(text)
  return typed
}

/** How much is shown after so many frames from now on. */
function after(typed: TypedText, frames: number, now = 0): number {
  for (let i = 0; i <= frames; i++) typed.step(now + i * FRAME_MS)
  return typed.shown.length
}

test('a short text is written at the pace of a quick reader', () => {
  const text = typed('x'.repeat(90))
  text.step(0)
  text.step(500)
  expect(text.shown.length).toBeGreaterThan(50)
  expect(text.shown.length).toBeLessThan(65)
  expect(text.isBehind).toBe(true)
  text.step(800)
  expect([text.shown.length, text.isBehind]).toEqual([90, false])
})

test('a long one is written faster, and evenly', () => {
  const text = typed('x'.repeat(8000))
  const steps = Array.from({ length: 20 }, (_, i) => after(text, 0, i * 40))
  const added = steps.slice(1).map((shown, i) => shown - (steps[i] ?? 0))
  expect(Math.max(...added) - Math.min(...added)).toBeLessThan(3)
  expect(after(text, 0, 800)).toBe(8000)
})

test('after a lot has been written fast, a little is written calmly again', () => {
  const text = typed('x'.repeat(8000))
  after(text, 30)
  text.step(1100)
  text.arrive('x'.repeat(8090))
  text.step(2000)
  text.step(2400)
  expect(text.shown.length - 8000).toBeGreaterThan(40)
  expect(text.shown.length - 8000).toBeLessThan(55)
})

test('nothing waits for a second, whatever arrives when', () => {
  const arrivals = fc.array(fc.record({ afterMs: fc.nat(400), length: fc.oneof(fc.nat(20), fc.nat(20_000)) }), {
    minLength: 1,
    maxLength: 30,
  })
  fc.assert(
    fc.property(arrivals, arrivals => {
      const typed = new TypedText({ motion: 'full' })
      let [now, text] = [0, '']
      const due: { at: number; length: number }[] = []
      const look = () => {
        typed.step(now)
        for (const { at, length } of due)
          if (now >= at + 1000) expect(typed.shown.length).toBeGreaterThanOrEqual(length)
      }
      for (const { afterMs, length } of arrivals) {
        for (const until = now + afterMs; now < until; now += FRAME_MS) look()
        text += 'x'.repeat(length)
        typed.arrive(text)
        due.push({ at: now, length: text.length })
      }
      for (const until = now + 1000; now <= until + FRAME_MS; now += FRAME_MS) look()
      expect(typed.isBehind).toBe(false)
    }),
  )
})

test('at 5,000 characters a second it keeps up at an even pace', () => {
  const typed = new TypedText({ motion: 'full' })
  const shown: number[] = []
  for (let frame = 1; frame <= 300; frame++) {
    typed.arrive('x'.repeat(frame * 165))
    typed.step(frame * FRAME_MS)
    shown.push(typed.shown.length)
  }
  const late = shown.slice(200).map((length, i) => length - (shown[199 + i] ?? 0))
  expect(Math.min(...late)).toBeGreaterThan(140)
  expect(Math.max(...late)).toBeLessThan(190)
})

test('a character is never shown in parts', () => {
  const character = fc.constantFrom('a', 'e\u0301', '👨‍👩‍👧‍👦', '🇩🇪', '漢', '\n', '🙂', 'נ')
  fc.assert(
    fc.property(fc.array(character, { maxLength: 60 }), fc.nat(60), (characters, ms) => {
      const text = characters.join('')
      const whole = boundaries(text)
      const stream = typed(text)
      for (let now = 0; stream.isBehind; now += ms + 1) {
        stream.step(now)
        expect(whole).toContain(stream.shown.length)
      }
      expect(stream.shown).toBe(text)
    }),
  )
})

test('half of a character that has arrived waits for the other half', () => {
  const text = typed('a\ud83d')
  expect([after(text, 50), text.isBehind]).toEqual([1, false])
  text.arrive('a\ud83d\ude42')
  expect(after(text, 50, 5000)).toBe(3)
  text.arrive('a\ud83d\ude42\ud83d')
  text.complete()
  expect(after(text, 0, 9000)).toBe(4)
})

test('once it is complete, all of it is there', () => {
  const text = typed('x'.repeat(5000))
  text.step(0)
  text.complete()
  expect([text.isBehind, text.step(1), text.shown.length, text.isBehind]).toEqual([true, true, 5000, false])
  expect(text.step(2)).toBe(false)
})

test('with little motion, what has arrived is there at once', () => {
  const text = new TypedText({ motion: 'reduced' })
  text.arrive('x'.repeat(500))
  expect([text.step(0), text.shown.length]).toEqual([true, 500])
})

test('a clock that goes back, and a machine that slept, are no harm', () => {
  const text = typed('x'.repeat(100))
  expect(after(text, 0, 1000)).toBe(1)
  expect(after(text, 0, 500)).toBe(1)
  expect(after(text, 0, 90_000_000)).toBe(100)
})
