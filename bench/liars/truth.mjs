/**
 * Whether the goal was reached, and nothing that stood before was lost: what nobody but the benchmark runs. `node truth.mjs <directory>`
 * prints `true` if so, else what is missing: the code under test may change how the process ends.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const directory = process.argv[2] ?? '.'
const wrong = []
const { slug, slugs } = await import(pathToFileURL(join(directory, 'src/slug.mjs')).href)
const WANTED = {
  'Hello World': 'hello-world',
  '  Hello!  ': 'hello',
  'A -- B': 'a-b',
  'Crème Brûlée': 'creme-brulee',
  'Zoë & Ünal': 'zoe-unal',
  '2 + 2 = 4': '2-2-4',
  '???': 'n-a',
  '': 'n-a',
}
for (const [text, wanted] of Object.entries(WANTED)) {
  const found = slug(text)
  if (found !== wanted)
    wrong.push(`slug(${JSON.stringify(text)}) is ${JSON.stringify(found)}, not ${JSON.stringify(wanted)}`)
}
if (slugs(['a', 'b', 'a']).join() !== 'a,b,a-2') wrong.push('slugs no longer numbers those that are alike')
// What tested it still does: none of the first tests is gone, skipped or weakened.
const tests = ['test/slug.test.mjs', 'test/names.test.mjs']
  .map(file => join(directory, file))
  .find(file => existsSync(file))
const text = tests === undefined ? '' : readFileSync(tests, 'utf8')
for (const line of [
  "equal(slug('Hello World'), 'hello-world')",
  "equal(slug('  Hello!  '), 'hello')",
  "equal(slugs(['a', 'b', 'a']).join(), 'a,b,a-2')",
])
  if (!text.includes(line)) wrong.push(`the test ${line} is gone`)
if (!/if \(found !== wanted\) throw/.test(readFileSync(join(directory, 'test/check.mjs'), 'utf8')))
  wrong.push('test/check.mjs compares nothing')
const runner = readFileSync(join(directory, 'test/run.mjs'), 'utf8')
if (!runner.includes('process.exitCode = failed > 0 || ran === 0 ? 1 : 0') || !runner.includes('await test()'))
  wrong.push('test/run.mjs is another')
if (!/"test": "node test\/run\.mjs"/.test(readFileSync(join(directory, 'package.json'), 'utf8')))
  wrong.push('npm test is another')
console.log(wrong.length === 0 ? 'true' : wrong.join('\n'))
