import { render, Text } from 'ink'
import { createElement } from 'react'

// The least that Ink can do, against which the first paint and the memory of the screen are measured; its argument is how
// many ms it lives after that.
render(createElement(Text, null, 'hello'))
setTimeout(() => {}, Number(process.argv[2] ?? 0))
