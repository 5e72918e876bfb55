import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { errorKinds } from '../src/base/error-codes.ts'

const PAGE = fileURLToPath(new URL('../docs/troubleshooting.md', import.meta.url))
const HEADING = '## Errors by code\n'

/** docs/troubleshooting.md: its head, which is written by hand, and each kind of error below it. */
export function errorsPage(page: string): string {
  const head = page.slice(0, page.indexOf(HEADING))
  const entries = Object.entries(errorKinds).map(
    ([code, { title, cause, remedy }]) => `### ${code}: ${title}\n\n${cause}\n\n- ${remedy}\n`,
  )
  return `${head}${HEADING}\n\`node scripts/errors-page.ts\` writes them from \`src/base/error-codes.ts\`.\n\n${entries.join('\n')}`
}

if (import.meta.main) writeFileSync(PAGE, errorsPage(readFileSync(PAGE, 'utf8')))
