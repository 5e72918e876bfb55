import type { Browser, Page } from 'playwright-core'
import type { RunningCodemachine } from '../../support/codemachine.ts'
import type { RealScene } from '../../support/real-scene.ts'
import { BOUND_MS, PHONE } from './page-scene.ts'

/** Serves the page as a person does, and opens the link that is printed. */
export async function openPage(
  scene: Pick<RealScene, 'start'>,
  browser: Browser,
  viewport = PHONE,
): Promise<{ page: Page; web: RunningCodemachine }> {
  const web = scene.start('web', '--port', '0', '--json')
  const link = await new Promise<string>((resolve, reject) => {
    let said = ''
    web.process.stdout?.on('data', (text: Buffer) => {
      said += String(text)
      const found = /"link":"([^"]+)"/.exec(said)?.[1]
      if (found !== undefined) resolve(found)
    })
    void web.ended.then(({ stderr }) => reject(new Error(stderr)))
  })
  const context = await browser.newContext({ viewport, reducedMotion: 'reduce' })
  context.setDefaultTimeout(BOUND_MS)
  const page = await context.newPage()
  await page.goto(link)
  return { page, web }
}
