import { mkdtemp, rm } from 'node:fs/promises'
import { isAbsolute, join, win32 } from 'node:path'
import type { Duplex } from 'node:stream'
import type { WritableByAgents } from './files.ts'
import { EXECA_OPTIONS, findProgram, isProgram, OWN_GROUP } from './run-process.ts'

/** The variable with the absolute path of the browser to use. */
export const BROWSER_VARIABLE = 'CODEMACHINE_BROWSER'

interface BrowserSearch {
  env: Readonly<NodeJS.ProcessEnv>
  platform: NodeJS.Platform
  /** The person's home directory. */
  home: string
  /** Folders whose browsers are ignored: an agent may have put them there. */
  where: WritableByAgents
}

/** Finds a Chromium, Chrome or Edge; null: none. `wrong`: why the configured one is unusable. */
export async function findBrowser(search: BrowserSearch): Promise<{ path: string | null; wrong: string | null }> {
  const named = search.env[BROWSER_VARIABLE]
  if (named) {
    const isThere = isAbsolute(named) && (await isProgram(named))
    return isThere
      ? { path: named, wrong: null }
      : { path: null, wrong: `${BROWSER_VARIABLE} names no program: ${named}` }
  }
  for (const path of installedBrowsers(search)) if (await isProgram(path)) return { path, wrong: null }
  for (const name of NAMES_ON_PATH) {
    const { path } = await findProgram(name, search)
    if (path !== null) return { path, wrong: null }
  }
  return { path: null, wrong: null }
}

const NAMES_ON_PATH = [
  'chromium',
  'chromium-browser',
  'google-chrome',
  'google-chrome-stable',
  'chrome',
  'microsoft-edge',
  'microsoft-edge-stable',
  'msedge',
] as const

/** Returns install paths of browsers that are not on the PATH. */
function installedBrowsers({ platform, env, home }: BrowserSearch): string[] {
  if (platform === 'darwin') {
    const folders = ['/Applications', join(home, 'Applications')]
    return ['Google Chrome', 'Chromium', 'Microsoft Edge'].flatMap(name =>
      folders.map(folder => join(folder, `${name}.app`, 'Contents', 'MacOS', name)),
    )
  }
  if (platform !== 'win32') return []
  // An empty variable would lead to the root of the drive, where everyone can make folders.
  const folders = [env.ProgramFiles, env['ProgramFiles(x86)'], env.LOCALAPPDATA].flatMap(each =>
    each !== undefined && win32.isAbsolute(each) ? [each] : [],
  )
  const programs = [
    'Google\\Chrome\\Application\\chrome.exe',
    'Chromium\\Application\\chrome.exe',
    'Microsoft\\Edge\\Application\\msedge.exe',
  ]
  return programs.flatMap(program => folders.map(folder => `${folder}\\${program}`))
}

/** A picture of a page. `height`: of the picture; `whole`: of the page; both in CSS pixels. */
interface PagePicture {
  png: Buffer
  height: number
  whole: number
}

interface PictureOptions {
  /** The whole environment of the browser. */
  env: NodeJS.ProcessEnv
  /** In CSS pixels. */
  width: number
  mostHeight: number
  /** Picture pixels per CSS pixel. */
  scale: number
  timeoutMs: number
  signal: AbortSignal
  /** Parent of the browser's profile, where no agent can write. */
  temporary: string
}

/**
 * Draws a page in a headless browser with a temporary profile, no scripts and no network. All of its processes have ended
 * when this resolves. A string: why there is no picture.
 */
export async function takePicture(
  browser: string,
  page: string,
  options: PictureOptions,
): Promise<PagePicture | string> {
  const profile = await mkdtemp(join(options.temporary, 'picture-'))
  try {
    const first = await drawIn(browser, page, profile, options, [])
    // As root, and in many containers, its sandbox cannot start. The page is ours and has no script.
    return typeof first === 'string' && WANTS_NO_SANDBOX.test(first)
      ? await drawIn(browser, page, profile, options, ['--no-sandbox'])
      : first
  } finally {
    // Its last processes may still write there for a moment.
    await rm(profile, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 }).catch(() => {})
  }
}

const WANTS_NO_SANDBOX = /no-sandbox|No usable sandbox/i

const QUIET = [
  '--headless',
  '--remote-debugging-pipe',
  '--hide-scrollbars',
  '--no-first-run',
  '--no-default-browser-check',
  '--disable-gpu',
  '--disable-extensions',
  '--disable-sync',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-dev-shm-usage',
  '--disable-quic',
  '--password-store=basic',
  '--use-mock-keychain',
  '--blink-settings=scriptEnabled=false',
  '--host-resolver-rules=MAP * ~NOTFOUND',
] as const

async function drawIn(
  browser: string,
  page: string,
  profile: string,
  options: PictureOptions,
  more: readonly string[],
): Promise<PagePicture | string> {
  const { execa } = await import('execa')
  const { env, timeoutMs, signal } = options
  const child = execa(browser, [...QUIET, ...more, `--user-data-dir=${profile}`, 'about:blank'], {
    ...EXECA_OPTIONS,
    ...OWN_GROUP,
    env,
    stdio: ['ignore', 'ignore', 'pipe', 'pipe', 'pipe'],
    buffer: false,
    timeout: timeoutMs,
    cancelSignal: signal,
  })
  let stderr = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr = (stderr + text).slice(-STDERR_CHARS)
  })
  const [, , , input, output] = child.nodeChildProcess.stdio as unknown as [null, null, null, Duplex, Duplex]
  const ended = child.then(({ timedOut, shortMessage }) => {
    if (timedOut) return `${browser} took longer than ${timeoutMs / 1000} seconds`
    return stderr.trim() === '' ? (shortMessage ?? `${browser} ended at once`) : lastLine(stderr)
  })
  try {
    const drawn = draw(new Door(input, output), page, options).catch((error: unknown) => String(error))
    return await Promise.race([drawn, ended])
  } finally {
    child.kill('SIGKILL')
    await ended
  }
}

const STDERR_CHARS = 8_000

function lastLine(text: string): string {
  const lines = text.trim().split('\n')
  return (lines.find(line => WANTS_NO_SANDBOX.test(line)) ?? lines.at(-1) ?? '').slice(0, 500)
}

async function draw(door: Door, page: string, options: PictureOptions): Promise<PagePicture> {
  const { width, mostHeight, scale } = options
  const { targetId } = await door.ask('Target.createTarget', { url: 'about:blank' })
  const { sessionId } = await door.ask('Target.attachToTarget', { targetId, flatten: true })
  const ask = (method: string, params: object = {}) => door.ask(method, params, String(sessionId))
  const metrics = (height: number) => ({ width, height, deviceScaleFactor: scale, mobile: false })
  await ask('Emulation.setDeviceMetricsOverride', metrics(FIRST_HEIGHT))
  await ask('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: 'light' }] })
  const { frameTree } = await ask('Page.getFrameTree')
  const { frame } = frameTree as { frame: { id: string } }
  // Sent directly, so no agent can change it in a file.
  await ask('Page.setDocumentContent', { frameId: frame.id, html: page })
  const { cssContentSize } = await ask('Page.getLayoutMetrics')
  const whole = Math.ceil((cssContentSize as { height: number }).height)
  const height = Math.min(whole, mostHeight)
  await ask('Emulation.setDeviceMetricsOverride', metrics(height))
  const { data } = await ask('Page.captureScreenshot', { format: 'png' })
  return { png: Buffer.from(String(data), 'base64'), height, whole }
}

const FIRST_HEIGHT = 800

/** Commands of the browser's protocol and their answers: JSON, each followed by a zero byte. */
class Door {
  readonly #input: Duplex
  readonly #waiting = new Map<number, PromiseWithResolvers<Record<string, unknown>>>()
  #asked = 0

  constructor(input: Duplex, output: Duplex) {
    this.#input = input
    const parts: Buffer[] = []
    for (const pipe of [input, output]) pipe.on('error', () => {})
    output.on('data', (chunk: Buffer) => {
      for (let rest = chunk; ; ) {
        const end = rest.indexOf(0)
        parts.push(end === -1 ? rest : rest.subarray(0, end))
        if (end === -1) break
        this.#take(Buffer.concat(parts.splice(0)).toString('utf8'))
        rest = rest.subarray(end + 1)
      }
    })
  }

  /** Rejects if the browser refuses. Never settles if it ends meanwhile. */
  ask(method: string, params: object, sessionId?: string): Promise<Record<string, unknown>> {
    this.#asked += 1
    const answer = Promise.withResolvers<Record<string, unknown>>()
    this.#waiting.set(this.#asked, answer)
    this.#input.write(`${JSON.stringify({ id: this.#asked, method, params, ...(sessionId && { sessionId }) })}\0`)
    return answer.promise
  }

  #take(text: string): void {
    const { id, result, error } = JSON.parse(text) as {
      id?: number
      result?: Record<string, unknown>
      error?: { message?: string }
    }
    const waiting = this.#waiting.get(id ?? -1)
    if (error === undefined) waiting?.resolve(result ?? {})
    else waiting?.reject(new Error(`the browser answers: ${error.message ?? 'no'}`))
    this.#waiting.delete(id ?? -1)
  }
}
