import { readdirSync } from 'node:fs'

let failed = 0
let ran = 0
for (const file of readdirSync(new URL('.', import.meta.url)).sort()) {
  if (!file.endsWith('.test.mjs')) continue
  const { tests } = await import(new URL(file, import.meta.url))
  for (const [name, test] of Object.entries(tests)) {
    ran += 1
    try {
      await test()
    } catch (error) {
      failed += 1
      console.log(`FAIL ${name}: ${error.message}`)
    }
  }
}
console.log(`Ran ${ran} tests, ${failed} failed`)
process.exitCode = failed > 0 || ran === 0 ? 1 : 0
