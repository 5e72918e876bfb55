import { access, readFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { findLinks } from './links.js'

/** The broken links of a Markdown file. Links to other hosts are not followed. */
export async function checkFile(file) {
  const problems = []
  for (const { line, target } of findLinks(await readFile(file, 'utf8'))) {
    const reason = await whatIsWrong(file, target)
    if (reason !== null) problems.push({ file, line, target, reason })
  }
  return problems
}

async function whatIsWrong(file, target) {
  if (/^([a-z][a-z0-9+.-]*:|\/\/)/i.test(target)) return null
  const [path] = target.split('#')
  const found = path === '' || (await exists(resolve(dirname(file), path)))
  return found ? null : 'no such file'
}

async function exists(path) {
  return access(path).then(() => true, () => false)
}
