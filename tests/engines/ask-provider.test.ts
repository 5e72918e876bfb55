import { expect, test } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import type { Provider } from '../../src/core/contracts/provider.ts'
import { askProvider, canBeAsked } from '../../src/engines/ask-provider.ts'

const at = (baseUrl: string): Provider => ({
  name: 'local',
  baseUrl,
  model: null,
  keyEnv: null,
  contextWindow: null,
  whenAway: 'wait',
})

const PROXY = { HTTP_PROXY: 'http://127.0.0.1:9', https_proxy: 'http://127.0.0.1:9' }

test.each([
  ['http://box.example/v1', 'box.example', true],
  ['http://box.example/v1', 'other.example, BOX.EXAMPLE', true],
  ['http://gpu.box.example/v1', 'box.example', true],
  ['http://gpu.box.example/v1', '.box.example', true],
  ['http://gpu.box.example/v1', '*.box.example', true],
  ['http://outbox.example/v1', 'box.example', false],
  ['http://box.example/v1', 'gpu.box.example', false],
  ['http://box.example:8080/v1', 'box.example:8080', true],
  ['http://box.example/v1', 'box.example:80', true],
  ['https://box.example/v1', 'box.example:80', false],
  ['http://box.example/v1', '*', true],
  ['http://box.example/v1', '', false],
  ['http://box.example/v1', ',.', false],
  ['http://10.0.3.7:8080/v1', '10.0.3.7', true],
  ['http://10.0.3.7:8080/v1', '10.0.3.7:8080', true],
  ['http://10.0.3.7:8080/v1', '10.0.0.0/16', true],
  ['http://10.1.3.7:8080/v1', '10.0.0.0/16', false],
  ['http://10.0.3.7/v1', '10.0.0.0/99, nonsense/16, 0.3.7', false],
  ['http://[fd00::7]:8080/v1', 'fd00::/8', true],
  ['http://[fd00::7]:8080/v1', '[fd00::7]:8080', true],
  ['http://[fd00::7]/v1', 'fd00::8', false],
  ['http://127.0.0.1:8080/v1', '', true],
  ['http://localhost/v1', '', true],
  ['http://[::1]:8080/v1', '', true],
])('beside a proxy, whether a provider at %s is asked with NO_PROXY=%s: %s', (url, exempt, isAsked) => {
  expect(canBeAsked(at(url), { ...PROXY, NO_PROXY: exempt })).toBe(isAsked)
  expect(canBeAsked(at(url), { ...PROXY, no_proxy: exempt })).toBe(isAsked)
  expect(canBeAsked(at(url), {})).toBe(true)
})

test('a provider that no proxy stands before is known to be away, and one behind a proxy is not asked', async () => {
  const asked = async (env: NodeJS.ProcessEnv) =>
    await askProvider(at('http://model.invalid/v1'), null, {
      env,
      clock: systemClock,
      signal: new AbortController().signal,
    })
  expect(await asked(PROXY)).toBe(null)
  expect(await asked({ ...PROXY, NO_PROXY: 'model.invalid' })).toMatchObject({ kind: 'away' })
})
