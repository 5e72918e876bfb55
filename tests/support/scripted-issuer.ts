import { mkdir, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { findRealCodex } from './find-real-codex.ts'
import type { TestPlace } from './place.ts'
import { chatGptLogin } from './scripted-model.ts'

/** Who gives out ChatGPT logins, on loopback. */
export interface ScriptedIssuer extends AsyncDisposable {
  url: string
  /** What the person says in their browser. */
  answer: 'yes' | 'no' | 'not yet'
}

/** Starts one that answers codex's login with a device code. */
export async function startIssuer(): Promise<ScriptedIssuer> {
  const { tokens } = JSON.parse(chatGptLogin(Date.now()))
  const answers: Record<string, () => [number, object]> = {
    '/api/accounts/deviceauth/usercode': () => [
      200,
      { device_auth_id: 'device', user_code: 'ABCD-1234', interval: '1' },
    ],
    '/api/accounts/deviceauth/token': () =>
      issuer.answer === 'yes'
        ? [200, { authorization_code: 'code', code_challenge: 'challenge', code_verifier: 'verifier' }]
        : [issuer.answer === 'no' ? 400 : 403, {}],
    '/oauth/token': () => [200, tokens],
    '/backend-api/wham/accounts/check': () => [200, { accounts: [WORKSPACE] }],
  }
  const server = createServer((request, response) => {
    const [status, body] = answers[request.url ?? '']?.() ?? [404, {}]
    request.resume()
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : 0
  const issuer: ScriptedIssuer = {
    url: `http://127.0.0.1:${port}`,
    answer: 'yes',
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
  return issuer
}

// Where codex would work with it from now on: nobody is there.
const WORKSPACE = {
  id: 'account',
  workspace_backend_origin: 'https://127.0.0.1:9',
  account_routing_override: 'NO_CONSTRAINT',
}

/** Has the real codex in a place log in there, by a flag that it has for that and does not tell of, and open no browser. */
export async function logInThere(place: TestPlace, { url }: ScriptedIssuer): Promise<void> {
  const { path } = await findRealCodex()
  const program = join(place.root, 'codex-with-issuer')
  const script = `if [ "$1" = login ]; then exec '${path}' "$@" --experimental_issuer '${url}'; fi\nexec '${path}' "$@"`
  await writeFile(program, `#!/bin/sh\n${script}\n`, { mode: 0o755 })
  const home = join(place.home, '.codemachine', 'codex')
  await mkdir(home, { recursive: true })
  await writeFile(join(home, 'config.toml'), `chatgpt_base_url = "${url}/backend-api"\n`)
  Object.assign(place.env, { CODEX_BIN: program, BROWSER: 'true' })
}
