//! Control bits of compiled kernels: do they say what the disassembler shows, and what the
//! hardware needs?

use gpumodel_core::isa::ControlBits;

use super::code::Code;
use super::text::{Line, lines};

const TEXT: &str = include_str!("../../../tests/data/trace_run/kernels.sass");

fn bits(line: &Line) -> ControlBits {
    ControlBits::read(line.encoding[1], std::iter::empty())
}

#[test]
fn the_disassembler_says_reuse_where_the_bits_do() {
    let codes: Vec<&str> = TEXT.lines().filter(|line| line.contains(';')).collect();
    let code = Code::read(TEXT, &[]).unwrap();
    assert_eq!(codes.len(), code.rows().len());
    for (text, row) in codes.into_iter().zip(code.rows()) {
        let control = row.control.unwrap();
        let marks = (0..row.sources.len()).filter(|&index| control.marks(index)).count();
        assert_eq!(marks, text.matches(".reuse").count(), "{text}");
        assert_eq!(marks, usize::try_from(control.reuse().count_ones()).unwrap(), "{text}");
    }
}

#[test]
fn who_uses_what_is_loaded_waits_for_its_barrier() {
    let all = lines(TEXT).unwrap();
    let mut loads = 0;
    for (index, line) in all.iter().enumerate().filter(|(_, line)| line.name() == "LDG") {
        let barrier = bits(line).write_barrier().unwrap();
        let user = all[index + 1..].iter().find(|user| {
            user.operands.iter().skip(1).any(|one| one.value == line.operands[0].value)
        });
        if let Some(user) = user {
            let waits = |line: &Line| bits(line).waits() >> barrier & 1 == 1;
            let place = all.iter().position(|one| one.pc == user.pc).unwrap();
            assert!(all[index + 1..=place].iter().any(waits), "PC {:#x}", user.pc);
            loads += 1;
        }
    }
    assert!(loads > 5);
}
