import { checkFile } from './check.js'

/** The whole command: checks these files, tells what it finds, and gives the exit code. */
export async function main(files, tell) {
  if (files.length === 0) {
    tell('Usage: linkcheck FILE.md ...')
    return 2
  }
  const problems = (await Promise.all(files.map(checkFile))).flat()
  for (const { file, line, target, reason } of problems) tell(`${file}:${line}: ${target}: ${reason}`)
  tell(problems.length === 0 ? 'No broken links.' : `Broken links: ${problems.length}`)
  return problems.length === 0 ? 0 : 1
}
