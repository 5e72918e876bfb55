import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type Emulator, startInEmulator } from '../../../support/emulator.ts'
import { makePlace } from '../../../support/place.ts'
import { logInThere, startIssuer } from '../../../support/scripted-issuer.ts'
import { leavesAsFound } from './manners.ts'

const KEY = 'sk-proj-nobody-0123456789abcdef'

const type = async (terminal: Emulator, text: string) => {
  terminal.type(text)
  await terminal.until(`› ${text}`)
  terminal.press('enter')
}

test('/login lends codex the terminal and comes back with the login, and /logout takes it away', async () => {
  await using place = await makePlace('')
  await using issuer = await startIssuer()
  await logInThere(place, issuer)
  await using terminal = startInEmulator(place, [], { columns: 100, rows: 40 })
  await terminal.until(/Login +not logged in: \/login/)
  issuer.answer = 'no'
  await type(terminal, '/login')
  await terminal.until('How do you log in?')
  terminal.press('down', 'enter')
  await terminal.untilInAll('ABCD-1234')
  await terminal.untilInAll('Nobody is logged in.')
  await terminal.until(/Login +not logged in: \/login/)
  await type(terminal, '/login --with-api-key')
  await terminal.untilInAll('API key (your typing is hidden):')
  terminal.type(KEY)
  terminal.press('enter')
  await terminal.untilInAll('Logged in: an API key. Rounds now use it.')
  await terminal.until(/Login +logged in with an API key/)
  expect(terminal.screen().join('\n')).not.toContain('Codex is not logged in.')
  terminal.type('/lo')
  await terminal.until(/\/logout .*\(rounds use an API key\)/)
  terminal.press('enter')
  await terminal.untilInAll('Logged out. Rounds use your own codex folder')
  await terminal.until(/Login +not logged in: \/login/)
  expect(terminal.bytes()).not.toContain(KEY)
  terminal.press('ctrl+d')
  expect(await leavesAsFound(terminal)).toBe(0)
})

test('Ctrl+C while codex waits for the person leaves the login, and not the screen', async () => {
  await using place = await makePlace('')
  await using issuer = await startIssuer()
  await logInThere(place, issuer)
  // What could be offered at the start is known only when the person has begun: it must not push away what they were told.
  const isToGoOn = join(place.root, 'go-on')
  const env = { CODEX_BIN: await slowed(place.env.CODEX_BIN ?? '', place.root, isToGoOn) }
  await using terminal = startInEmulator(place, [], { columns: 100, rows: 40, env })
  await terminal.until('Type a goal')
  await type(terminal, '/login --device-auth-please')
  await terminal.until('/login accepts --device-auth or --with-api-key')
  await writeFile(isToGoOn, '')
  await terminal.until(/Login +not logged in: \/login/)
  await terminal.until(rows => !rows.join('\n').includes('/login accepts'))
  expect(terminal.bytes()).not.toContain('How do you want to start?')
  issuer.answer = 'not yet'
  await type(terminal, '/login --device-auth')
  await terminal.untilInAll('ABCD-1234')
  terminal.press('ctrl+c')
  await terminal.untilInAll('Nobody is logged in.')
  await terminal.until(/› *\n/)
  terminal.press('ctrl+d')
  expect(await leavesAsFound(terminal)).toBe(0)
})

/** A codex that says at once which version it is, and waits for a file before all else. */
async function slowed(codex: string, folder: string, awaited: string): Promise<string> {
  const path = join(folder, 'slow-codex')
  const wait = `for _ in $(seq 600); do [ -e '${awaited}' ] && break; sleep 0.05; done`
  await writeFile(path, `#!/bin/sh\n[ "$1" = --version ] || ${wait}\nexec '${codex}' "$@"\n`, { mode: 0o755 })
  return path
}

test('a key that is typed behind /login goes out of sight', async () => {
  await using place = await makePlace('')
  await using terminal = startInEmulator(place, [], { columns: 100, rows: 40 })
  await terminal.until('Type a goal')
  await type(terminal, `/login ${KEY}`)
  await terminal.until('/login accepts --device-auth or --with-api-key')
  await terminal.untilInAll(/^› \/login/m)
  expect(terminal.all().join('\n')).not.toContain(KEY)
  terminal.press('ctrl+d')
  expect(await leavesAsFound(terminal)).toBe(0)
})
