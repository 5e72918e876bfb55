/** Set up before all tests: what is random in them follows from one seed, which is printed, so that the run can be had again. */
export default function setSeed(): void {
  process.env.SEED ||= `${1 + Math.floor(Math.random() * 1_000_000)}`
  process.stdout.write(`What is random in this run can be had again with SEED=${process.env.SEED}\n`)
}
