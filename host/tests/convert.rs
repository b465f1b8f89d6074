//! Conversions of buffers by the host's API, on the CPU device.

use warpwire::abi::{ElementType, Global};
use warpwire::convert::{Converter, Elements};
use warpwire::device::{Buffer, Device, DeviceSelector};
use warpwire::error::DataTypeError;
use warpwire::types::{E4m3B15, F16, Standard};
use warpwire::{Error, ErrorKind};

fn at(address: Global<u8>, element: ElementType) -> Elements {
    Elements { address, element }
}

#[test]
fn a_buffer_is_converted_there_and_back() {
    let device = Device::open(DeviceSelector::Cpu).unwrap();
    let (converter, stream) = (Converter::new(&device).unwrap(), device.stream().unwrap());
    for count in [1, 1000, 20_003] {
        let values: Vec<f32> = (0..count).map(|i| (i as f32 * 0.37).sin() * 0.9).collect();
        let wide: Buffer<f32> = device.allocate(count).unwrap();
        wide.write(&values).unwrap();
        let codes: Buffer<u8> = device.allocate(count).unwrap();
        let halves: Buffer<F16> = device.allocate(count).unwrap();
        let code = at(codes.address(), ElementType::E4m3B15);
        // SAFETY: the buffers hold as many elements and outlive the launches.
        unsafe {
            let from = at(wide.address().cast(), ElementType::F32);
            converter.enqueue(&stream, from, code, count as u64).unwrap();
            let to = at(halves.address().cast(), ElementType::F16);
            converter.enqueue(&stream, code, to, count as u64).unwrap();
        }
        stream.synchronize().unwrap();
        let expected: Vec<E4m3B15<Standard>> = values.iter().map(|&value| E4m3B15::from_f32(value)).collect();
        assert_eq!(codes.read().unwrap(), expected.iter().map(|code| code.to_bits()).collect::<Vec<_>>());
        assert_eq!(halves.read().unwrap(), expected.iter().map(|code| code.to_f16()).collect::<Vec<_>>());
    }
}

#[test]
fn what_cannot_be_converted_is_an_error_that_names_both() {
    let device = Device::open(DeviceSelector::Cpu).unwrap();
    let (converter, stream) = (Converter::new(&device).unwrap(), device.stream().unwrap());
    let buffer: Buffer<u64> = device.allocate(8).unwrap();
    let address = buffer.address().cast();
    let convert = |from, to| {
        // SAFETY: nothing is queued.
        unsafe { converter.enqueue(&stream, from, to, 4) }.unwrap_err()
    };
    let error = convert(at(address, ElementType::I32), at(address.byte_add(32), ElementType::F32));
    assert!(matches!(error, Error::DataType(DataTypeError::NoConversion { .. })));
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert_eq!(error.to_string(), "there is no conversion from i32 to f32: integers do not convert");
    let error = convert(at(address, ElementType::E4m3), at(address.byte_add(32), ElementType::F32));
    assert!(error.to_string().contains("from fp8_e4m3 to f32: convert in a kernel of your own"), "{error}");
    let error =
        convert(at(address.byte_add(1), ElementType::F16), at(address.byte_add(32), ElementType::E4m3B15));
    assert!(matches!(error, Error::Misaligned { what: "source", alignment: 2, .. }), "{error}");
}
