import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { type Incident, readIncidents, readPromises, SECTIONS } from './promises.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

/** docs/inside/promises.md, made from the promises that stand in the tests. */
export function promisesPage(): string {
  const promises = readPromises(ROOT)
  const sections = Object.entries(SECTIONS).map(([letter, title]) => {
    const rows = promises
      .filter(each => each.letter === letter)
      .map(
        ({ id, sentences, held }) =>
          `| ${id} | ${cell(sentences[0] ?? '')} | ${[...new Set(held.map(({ path }) => path))].join('<br>')} |\n`,
      )
    return `\n## ${title}\n\n| no. | promise | held by |\n| --- | --- | --- |\n${rows.join('')}`
  })
  return `${HEAD}${sections.join('')}${INCIDENTS}${readIncidents(ROOT).map(incidentRow).join('')}`
}

const HEAD = `# Promises

Each row is a promise, and the files of the tests that fail if it is broken. \`node scripts/promises-page.ts\` writes this page from the tests: a call of
\`promise('D4', '…')\` stands above each of them. A number stays with its promise; there may be gaps.

Tests in *End to end* run the built program, with the real codex and a scripted model.
`

const INCIDENTS = `
## Lost nights and false dones

Each fault so far that cost a user a night or work, or called work done that was not. The command runs the test that would find it again.
A *trial* is a person or a program that used codemachine as a stranger, or attacked it.

| kind | what happened | came in | fixed | found by | command |
| --- | --- | --- | --- | --- | --- |
`

function incidentRow({ kind, fault, since, fixed, foundBy, path, title }: Incident): string {
  const words = title.split(/[^\p{L}\p{N}’ ,]/u)[0]?.trim() ?? ''
  const command = `npx vitest run ${path}${words === '' ? '' : ` -t "${words}"`}`
  return `| ${kind} | ${cell(fault)} | ${since} | ${fixed} | ${foundBy} | \`${command}\` |\n`
}

function cell(text: string): string {
  return text.replace(/(?<!\\)\|/g, '\\|').replaceAll('\n', ' ')
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  writeFileSync(new URL('../docs/inside/promises.md', import.meta.url), promisesPage())
