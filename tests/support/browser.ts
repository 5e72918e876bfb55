import { homedir } from 'node:os'
import { type Browser, chromium } from 'playwright-core'
import { BROWSER_VARIABLE, findBrowser } from '../../src/platform/headless-browser.ts'
import { unless } from './skipped.ts'

const { CHROMIUM } = process.env
const found = await findBrowser({
  env: { ...process.env, [BROWSER_VARIABLE]: CHROMIUM },
  platform: process.platform,
  home: homedir(),
  where: { workDirectory: [], gitDirectories: [], elsewhere: [], temporary: [] },
})
const WHY =
  found.wrong === null ? 'there is no Chromium, Chrome or Edge; CHROMIUM names one' : `CHROMIUM is ${CHROMIUM}`

/** The path of the browser that pages are tried in: that which `CHROMIUM` names, or one of this machine; empty: there is none. */
export const BROWSER = found.path ?? ''
export const hasBrowser = BROWSER !== ''
/** Stands in the title of what is skipped: empty where there is a browser. */
export const WITHOUT_BROWSER = unless(hasBrowser, WHY)

const QUIET = [
  'disable-quic',
  'no-first-run',
  'disable-background-networking',
  'disable-component-update',
  'disable-sync',
]

/** Starts the browser, with that environment. Whoever starts it closes it. */
export async function openBrowser(env: NodeJS.ProcessEnv = process.env): Promise<Browser> {
  const args = ['--no-sandbox', ...QUIET.map(each => `--${each}`)]
  return await chromium.launch({ executablePath: BROWSER, args, env })
}
